package io.tamis;

/** The checksum of a body that comes in pieces; seeded with the number of keys, so that it guards both. */
final class BodySum {
    /** Bytes of a piece; the last one may be shorter. */
    static final int PIECE = 1 << 16;
    /** Up to this length XXH3 is another function. */
    private static final int SHORT = 240;

    private final long length;
    private final long seed;
    private final Xxh3.Stripes stripes;
    private long added;
    private long sum;

    BodySum(long length, long keys) {
        this.length = length;
        seed = keys;
        stripes = new Xxh3.Stripes(keys);
        if (length == 0) {
            sum = Xxh3.hash64(new byte[0], 0, keys);
        }
    }

    /** The next piece: {@link #PIECE} bytes, or what is left. */
    void add(byte[] piece, int bytes) {
        added += bytes;
        if (length <= SHORT) {
            sum = Xxh3.hash64(piece, bytes, seed);
            return;
        }
        boolean isLast = added == length;
        int at = 0;
        for (; isLast ? bytes - at > Xxh3.Stripes.BLOCK : at < bytes; at += Xxh3.Stripes.BLOCK) {
            stripes.block(piece, at);
        }
        if (isLast) {
            stripes.end(piece, at, bytes);
            sum = stripes.merge64(length);
        }
    }

    void addAll(Words words) {
        var piece = new byte[PIECE];
        for (long at = 0; at < length; at += PIECE) {
            int bytes = (int) Math.min(PIECE, length - at);
            words.copy(at / 8, bytes / 8, piece);
            add(piece, bytes);
        }
    }

    long get() {
        return sum;
    }
}
