package io.tamis;

/** The textbook Bloom filter. */
final class BloomLayout extends BitLayout {
    private static final int MAX_HASHES = 64;

    /** 1 to 2^63, without a sign. */
    final long bits;

    final int hashes;

    BloomLayout(long bits, int hashes) {
        super(Kind.BLOOM);
        this.bits = bits;
        this.hashes = hashes;
    }

    static BloomLayout decode(long bits, int hashes) throws TamisException {
        if (bits - 1 < 0) {
            throw TamisException.corrupt("bits", "1 to 2^63", Long.toUnsignedString(bits));
        }
        check("hashes", "1 to 64", hashes & 0xFFFFFFFFL, 1, MAX_HASHES);
        return new BloomLayout(bits, hashes);
    }

    @Override
    long bytes() {
        return bits + 511 >>> 9 << 6;
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        for (int i = 0; i < hashes; i++) {
            long bit = Bits.high(lo, bits);
            if ((words.get(bit >>> 6) >>> bit & 1) == 0) {
                return false;
            }
            lo = next(hi, lo);
        }
        return true;
    }

    @Override
    boolean put(long[] words, long hi, long lo) {
        boolean isNew = false;
        for (int i = 0; i < hashes; i++) {
            long bit = Bits.high(lo, bits);
            int word = (int) (bit >>> 6);
            long mask = 1L << bit;
            // A set bit is left alone: reading keeps the line shared.
            if (((long) Words.OnHeap.WORDS.getOpaque(words, word) & mask) == 0) {
                isNew |= ((long) Words.OnHeap.WORDS.getAndBitwiseOr(words, word, mask) & mask) == 0;
            }
            lo = next(hi, lo);
        }
        return isNew;
    }

    private static long next(long hi, long lo) {
        return lo * 0xD6E8FEB86659FD93L + hi;
    }

    @Override
    void unite(long[] words, int index, long theirs) {
        Words.OnHeap.WORDS.getAndBitwiseOr(words, index, theirs);
    }

    @Override
    void checkLike(Layout other) {
        checkSame("bits", bits, ((BloomLayout) other).bits);
        checkSame("hashes", hashes, ((BloomLayout) other).hashes);
    }

    private double fill(Words words) {
        return Math.min(words.ones() / (double) bits, 1);
    }

    @Override
    double keysNow(Words words) {
        // If all bits are set, as many keys as would leave one unset.
        double fill = Math.min(fill(words), 1 - 1.0 / bits);
        return -(double) bits / hashes * Floats.log1p(-fill);
    }

    @Override
    double rateNow(Words words) {
        return Floats.power(fill(words), hashes);
    }

    @Override
    long shape1() {
        return bits;
    }

    @Override
    int shape2a() {
        return hashes;
    }

    @Override
    int shape2b() {
        return 0;
    }
}
