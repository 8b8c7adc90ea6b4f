package io.tamis;

/** A finished list: the exclusive or of a key's four slots is its fingerprint. */
final class FuseLayout extends Layout {
    private final long blocks;
    private final int width;
    private final int shardBits;
    private final long near;
    private final long window;
    private final long shardWords;

    private FuseLayout(int width, int shardBits, long blocks, long window) {
        super(Kind.FUSE);
        this.width = width;
        this.shardBits = shardBits;
        this.blocks = blocks;
        near = 64 * (blocks - 2 * window);
        this.window = 64 * window;
        shardWords = 8 + blocks * width;
    }

    static FuseLayout decode(long size, int a, int b) throws TamisException {
        long width = b & 0xFF;
        long shardBits = b >>> 8;
        long blocks = size >>> 32 != 0 ? 0xFFFFFFFFL : size;
        long window = a & 0xFFFFFFFFL;
        check("fingerprint width", "1 to 32", width, 1, 32);
        if ((shardBits | blocks | window) != 0) {
            check("shard bits", "0 to 16", shardBits, 0, 16);
            check("blocks of a shard", "3 to 67108863", blocks, 3, (1 << 26) - 1);
            check("window", "at least 1, and less than half of the blocks", window, 1, (blocks + 1) / 2 - 1);
        }
        return new FuseLayout((int) width, (int) shardBits, blocks, window);
    }

    @Override
    long bytes() {
        return blocks == 0 ? 0 : 8 * Bits.roundUp((shardWords << shardBits) + 1, 8);
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        if (blocks == 0) {
            return false;
        }
        long shard = shardBits == 0 ? 0 : hi >>> 64 - shardBits;
        long first = shard * shardWords;
        long slot = Bits.reduce(hi << shardBits, near);
        long mixed = lo * words.get(first);
        long far = slot + window + Bits.reduce(mixed, window);
        long x = Math.max(1, mixed * window >>> 58);
        long y = Math.max(1, mixed >>> 26 & 63);
        long slots = 64 * (first + 8);
        long all = at(words, slots, slot) ^ at(words, slots, slot ^ x) ^ at(words, slots, far) ^ at(words, slots, far ^ y);
        return all == (hi & (1L << width) - 1);
    }

    private long at(Words words, long slots, long slot) {
        return CuckooLayout.bits(words, slots + slot * width, width);
    }

    @Override
    double keysNow(Words words) {
        return (64 * blocks << shardBits) * 0.9;
    }

    @Override
    double rateNow(Words words) {
        return blocks == 0 ? 0 : Math.scalb(1.0, -width);
    }
}
