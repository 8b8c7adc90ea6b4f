package io.tamis;

/** A finished list: the solution of a linear system, in up to three bumping layers and a last one. */
final class RibbonLayout extends Layout {
    private static final int LAYERS = 3;
    private static final int BUCKET = 192;
    /** Keys that start in the first so many rows of a bucket are bumped, by the bucket's code. */
    private static final int[] BUMPED = {0, 20, 44, BUCKET};

    private final int width;
    private final int seed;
    /** Bumping layers in use. */
    private final int layers;

    private final long[] shards = new long[LAYERS];
    private final long[] rows = new long[LAYERS];
    private final long[] first = new long[LAYERS];
    private final long lastFirst;
    private final long lastRows;
    private final long codesAt;
    private final long bodyWords;
    /** Where the table begins in the words: a cascade has two. */
    private final long at;

    private RibbonLayout(long one, long two, long three, long at) throws TamisException {
        super(Kind.RIBBON);
        this.at = at;
        width = (int) (three >>> 48 & 0xFF);
        seed = (int) (three >>> 56);
        long[] all = {one & 0xFFFFFFFFL, one >>> 32, two & 0xFFFFFFFFL};
        lastRows = 64 * (two >>> 32);
        boolean sound = width >= 1 && width <= 32 && lastRows < 1L << 32;
        int used = 0;
        long end = 0;
        for (int i = 0; i < LAYERS; i++) {
            shards[i] = all[i];
            rows[i] = (three >>> 16 * i & 0xFFFF) * BUCKET;
            first[i] = end;
            boolean absent = shards[i] == 0 && rows[i] == 0;
            sound &= absent || shards[i] != 0 && rows[i] != 0 && used == i;
            used += absent ? 0 : 1;
            end += shards[i] * rows[i];
        }
        if (!sound) {
            throw TamisException.corrupt(
                    "ribbon layers",
                    "layers, a last one and a width that a build makes",
                    Long.toHexString(one) + " " + Long.toHexString(two) + " " + Long.toHexString(three));
        }
        layers = used;
        lastFirst = end;
        codesAt = (end + lastRows) / 64 * width;
        bodyWords = Bits.roundUp(codesAt + (end / BUCKET + 31) / 32, 8);
    }

    static RibbonLayout decode(long one, long two, long three) throws TamisException {
        return decode(one, two, three, 0);
    }

    /** Of a table that begins with this word. */
    static RibbonLayout decode(long one, long two, long three, long at) throws TamisException {
        return new RibbonLayout(one, two, three, at);
    }

    @Override
    long bytes() {
        return 8 * bodyWords;
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        if (bodyWords == 0) {
            return false;
        }
        for (int i = 0; i < layers; i++) {
            long row = row(hi, first[i], shards[i], rows[i]);
            long bucket = row / BUCKET;
            int code = (int) (words.get(at + codesAt + bucket / 32) >>> 2 * (bucket % 32)) & 3;
            if (row % BUCKET >= BUMPED[code]) {
                return matches(words, row, hi, lo);
            }
            hi ^= Bits.mix(lo);
            lo ^= Bits.mix(hi);
        }
        if (lastRows == 0) {
            return false;
        }
        hi ^= Bits.mix(lo ^ seed);
        lo ^= Bits.mix(hi);
        return matches(words, row(hi, lastFirst, 1, lastRows), hi, lo);
    }

    private static long row(long hi, long first, long shards, long rows) {
        return first + Bits.reduce(hi, shards) * rows + Bits.reduce(hi * shards, rows - 63);
    }

    private boolean matches(Words words, long row, long hi, long lo) {
        long chosen = lo | 1;
        long fingerprint = Bits.mix(hi ^ lo);
        int shift = (int) (row & 63);
        long group = at + row / 64 * width;
        for (int column = 0; column < width; column++) {
            long x = words.get(group + column) >>> shift;
            if (shift != 0) {
                x |= words.get(group + width + column) << 64 - shift;
            }
            if ((Long.bitCount(x & chosen) & 1) != (fingerprint >>> column & 1)) {
                return false;
            }
        }
        return true;
    }

    @Override
    double keysNow(Words words) {
        return lastFirst + lastRows;
    }

    @Override
    double rateNow(Words words) {
        return bodyWords == 0 ? 0 : Math.scalb(1.0, -width);
    }
}
