package io.tamis;

/** Fingerprints in one of two places, each a window of neighbouring slots. */
final class CuckooLayout extends Layout {
    private final long slots;
    private final int window;
    private final int width;
    private final long places;
    private final long fingerprints;

    private CuckooLayout(long slots, int window, int width) {
        super(Kind.CUCKOO);
        this.slots = slots;
        this.window = window;
        this.width = width;
        places = slots - window + 1;
        fingerprints = ((1L << width) - 1) / window;
    }

    static CuckooLayout decode(long slots, int window, int width) throws TamisException {
        check("window", "2 to 4 slots", window & 0xFFFFFFFFL, 2, 4);
        check("slot width", "4 to 32 bits, a window's at most 64", width & 0xFFFFFFFFL, 4, Math.min(32, 64 / window));
        check("slots", "a window's at least and below 2^56 bits", slots, window, (1L << 56) / width - 1);
        return new CuckooLayout(slots, window, width);
    }

    @Override
    long bytes() {
        return Bits.roundUp(slots * width + 64, 512) / 8;
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        long fingerprint = 1 + Bits.reduce(Bits.mix(lo), fingerprints);
        long first = Bits.reduce(hi, places);
        if (holds(words, first, fingerprint)) {
            return true;
        }
        long second = Bits.reduce(Bits.mix(Bits.mix(fingerprint)), places) - first;
        return holds(words, second < 0 ? second + places : second, fingerprint);
    }

    private boolean holds(Words words, long place, long fingerprint) {
        for (int i = 0; i < window; i++) {
            if (slot(words, place + i) == i * fingerprints + fingerprint) {
                return true;
            }
        }
        return false;
    }

    private long slot(Words words, long slot) {
        return bits(words, slot * width, width);
    }

    /** So many bits of a body, 1 to 32, from this one on. A word follows the last. */
    static long bits(Words words, long first, int count) {
        int shift = (int) (first & 63);
        long low = words.get(first >>> 6) >>> shift;
        if (shift + count > 64) {
            low |= words.get((first >>> 6) + 1) << 64 - shift;
        }
        return low & (1L << count) - 1;
    }

    /** Exact: the number of entries. */
    @Override
    double keysNow(Words words) {
        long entries = 0;
        for (long i = 0; i < slots; i++) {
            entries += slot(words, i) == 0 ? 0 : 1;
        }
        return entries;
    }

    @Override
    double rateNow(Words words) {
        double keys = keysNow(words);
        double single = 1.0 / places;
        return places == 1 ? hit(keys, 1) : (1 - single) * hit(keys, 2) + single * hit(keys, 1);
    }

    private double hit(double keys, double ofPlaces) {
        double cells = (double) places * fingerprints;
        return any(keys * Floats.log1p(-Math.min(ofPlaces / cells, 1)));
    }
}
