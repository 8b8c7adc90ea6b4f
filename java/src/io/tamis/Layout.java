package io.tamis;

/**
 * What the words of a body mean: the geometry of a kind, and how it is asked. Every number was checked, so no question
 * leaves the body.
 */
abstract class Layout {
    final Kind kind;

    Layout(Kind kind) {
        this.kind = kind;
    }

    /** Of the body, a multiple of 64. */
    abstract long bytes();

    /** Whether the key of this hash may be there. */
    abstract boolean contains(Words words, long hi, long lo);

    /** The number of keys, estimated from what the words hold. */
    abstract double keysNow(Words words);

    /** The rate of false "yes" to expect from what the words hold. */
    abstract double rateNow(Words words);

    /**
     * With what the body says about itself, checked.
     *
     * @param promise the rate in the header
     */
    Layout complete(Words words, double promise) throws TamisException {
        return this;
    }

    /** The number of keys that the body itself counts, or -1. */
    long counted(Words words) {
        return -1;
    }

    /** What asks a body; the kind that is asked most often has a faster one for the heap. */
    Probe asking(Words words) {
        return new Probe() {
            @Override
            boolean at(long hi, long lo) {
                return contains(words, hi, lo);
            }
        };
    }

    /** The layout that the shape in a header describes, checked. Numbers have no sign. */
    static Layout decode(Kind kind, long size, int a, int b, long c) throws TamisException {
        if (kind != Kind.GROWING && kind != Kind.RIBBON && kind != Kind.WINDOW && c != 0) {
            throw TamisException.corrupt("third shape word", 0, Long.toUnsignedString(c));
        }
        switch (kind) {
            case BLOOM:
                if (b != 0) {
                    throw TamisException.corrupt("second half of the second shape word", 0, Integer.toUnsignedString(b));
                }
                return BloomLayout.decode(size, a);
            case BLOCKED:
                return BlockedLayout.decode(size, a, b);
            case COUNTING:
                return new CountingLayout(BlockedLayout.decode(size, a, b));
            case CUCKOO:
                return CuckooLayout.decode(size, a, b);
            case GROWING:
                return GrowingLayout.decode(size, a, b, c);
            case FUSE:
                return FuseLayout.decode(size, a, b);
            case RIBBON:
                return RibbonLayout.decode(size, a & 0xFFFFFFFFL | (long) b << 32, c);
            case CASCADE:
                if ((a | b) != 0) {
                    throw TamisException.corrupt("second shape word", 0, Integer.toUnsignedString(a | b));
                }
                return CascadeLayout.decode(size);
            default:
                return WindowLayout.decode(size, a, b, c);
        }
    }

    /** Throws unless the number is between the two. */
    static void check(String what, String expected, long number, long least, long most) throws TamisException {
        if (number < least || number > most) {
            throw TamisException.corrupt(what, expected, Long.toUnsignedString(number));
        }
    }

    /** The chance that one of these happens, from the sum of the logarithms of the chances that each does not. */
    static double any(double sumOfLogs) {
        return -StrictMath.expm1(sumOfLogs);
    }
}
