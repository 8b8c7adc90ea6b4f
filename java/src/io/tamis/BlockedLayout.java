package io.tamis;

import java.util.function.LongToIntFunction;

/** Bloom bits of a key within one to four lines of 64 bytes, at most one in each word. */
final class BlockedLayout extends BitLayout {
    static final int MAX_HASHES = 8;
    static final int MAX_LINES_PER_KEY = 4;
    static final long MAX_LINES = 1L << 54;

    final long lines;
    /** Bits of a key in each of its lines. */
    final int hashes;

    final int linesPerKey;
    final long linesPerBank;

    BlockedLayout(long lines, int hashes, int linesPerKey) {
        super(Kind.BLOCKED);
        this.lines = lines;
        this.hashes = hashes;
        this.linesPerKey = linesPerKey;
        linesPerBank = lines / linesPerKey;
    }

    static BlockedLayout decode(long lines, int hashes, int linesPerKey) throws TamisException {
        check("lines", "1 to 2^54", lines, 1, MAX_LINES);
        check("hashes per line", "1 to 8", hashes & 0xFFFFFFFFL, 1, MAX_HASHES);
        check("lines per key", "1 to 4", linesPerKey & 0xFFFFFFFFL, 1, MAX_LINES_PER_KEY);
        if (lines % linesPerKey != 0) {
            throw TamisException.corrupt("lines", "a multiple of the lines per key", lines);
        }
        return new BlockedLayout(lines, hashes, linesPerKey);
    }

    @Override
    long bytes() {
        return lines * 64;
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        return contains(words, 0, hi, lo);
    }

    /** Of a body that begins with this word. */
    boolean contains(Words words, long first, long hi, long lo) {
        for (int bank = 0; ; bank++) {
            long line = first + 8 * (bank * linesPerBank + Bits.reduce(hi, linesPerBank));
            int start = (int) (lo >>> 61);
            long all = 1;
            for (int i = start; i < start + hashes; i++) {
                int word = i & 7;
                all &= words.get(line + word) >>> (lo >>> 6 * word);
            }
            if ((all & 1) == 0) {
                return false;
            }
            if (bank == linesPerKey - 1) {
                return true;
            }
            hi = Bits.mix(hi);
            lo = Bits.mix(lo);
        }
    }

    @Override
    Probe asking(Words words) {
        return words instanceof Words.OnHeap ? new OnHeap(this, ((Words.OnHeap) words).words) : super.asking(words);
    }

    /** The same question on the heap. */
    private static final class OnHeap extends Probe {
        private final long[] words;
        private final long linesPerBank;
        /** A bit for each word with a bit of the key, from its first on. */
        private final long cover;

        private final int linesPerKey;

        OnHeap(BlockedLayout layout, long[] words) {
            this.words = words;
            linesPerBank = layout.linesPerBank;
            cover = (1L << layout.hashes) - 1;
            linesPerKey = layout.linesPerKey;
        }

        @Override
        boolean of(byte[] key, long seed) {
            return Xxh3.hash(key, seed, this);
        }

        @Override
        boolean at(long hi, long lo) {
            return has((int) Bits.reduce(hi, linesPerBank) << 3, lo) && (linesPerKey == 1 || others(hi, lo));
        }

        /**
         * All words without a branch or a loop, though a key has bits in some only: so more keys wait for memory
         * together, and a large filter answers in two thirds of the time.
         */
        private boolean has(int line, long lo) {
            long found = shifted(line, lo) & 1
                    | (shifted(line + 1, lo >>> 6) & 1) << 1
                    | (shifted(line + 2, lo >>> 12) & 1) << 2
                    | (shifted(line + 3, lo >>> 18) & 1) << 3
                    | (shifted(line + 4, lo >>> 24) & 1) << 4
                    | (shifted(line + 5, lo >>> 30) & 1) << 5
                    | (shifted(line + 6, lo >>> 36) & 1) << 6
                    | (shifted(line + 7, lo >>> 42) & 1) << 7;
            // As the key's words are in a row around the end, so are the bits found, twice.
            return (~((found | found << 8) >>> (lo >>> 61)) & cover) == 0;
        }

        /** The word, with the bit of this position as its lowest. */
        private long shifted(int word, long position) {
            return (long) Words.OnHeap.WORDS.getOpaque(words, word) >>> position;
        }

        private boolean others(long hi, long lo) {
            for (int bank = 1; bank < linesPerKey; bank++) {
                hi = Bits.mix(hi);
                lo = Bits.mix(lo);
                if (!has((int) (bank * linesPerBank + Bits.reduce(hi, linesPerBank)) << 3, lo)) {
                    return false;
                }
            }
            return true;
        }
    }

    @Override
    boolean put(long[] words, long hi, long lo) {
        boolean isNew = false;
        for (int bank = 0; bank < linesPerKey; bank++) {
            int line = (int) (bank * linesPerBank + Bits.reduce(hi, linesPerBank)) << 3;
            int start = (int) (lo >>> 61);
            for (int i = start; i < start + hashes; i++) {
                int word = i & 7;
                long mask = 1L << (lo >>> 6 * word);
                // A set bit is left alone: reading keeps the line shared.
                if (((long) Words.OnHeap.WORDS.getOpaque(words, line + word) & mask) == 0) {
                    isNew |= ((long) Words.OnHeap.WORDS.getAndBitwiseOr(words, line + word, mask) & mask) == 0;
                }
            }
            hi = Bits.mix(hi);
            lo = Bits.mix(lo);
        }
        return isNew;
    }

    @Override
    void unite(long[] words, int index, long theirs) {
        Words.OnHeap.WORDS.getAndBitwiseOr(words, index, theirs);
    }

    @Override
    void checkLike(Layout other) {
        var theirs = (BlockedLayout) other;
        checkSame("lines", lines, theirs.lines);
        checkSame("hashes per line", hashes, theirs.hashes);
        checkSame("lines per key", linesPerKey, theirs.linesPerKey);
    }

    @Override
    double keysNow(Words words) {
        return keysFromOnes(words.ones());
    }

    /** The number of keys, estimated from how many bits are set in all. */
    double keysFromOnes(long ones) {
        // A key leaves a bit of its bank unset with probability 1 - k/512/lines, whatever the others do.
        double bits = lines * 512.0;
        double fill = Math.min(ones, bits - 1) / bits;
        double share = hashes / 512.0 / linesPerBank;
        return Floats.log1p(-fill) / Floats.log1p(-share);
    }

    @Override
    double rateNow(Words words) {
        return rateNow(word -> Long.bitCount(words.get(word)));
    }

    /** The rate, from how many bits of every single word are set. */
    double rateNow(LongToIntFunction ones) {
        // With a bit in every word it makes no difference where a key starts.
        int starts = hashes == 8 ? 1 : 8;
        var fill = new double[8];
        double rate = 1;
        long line = 0;
        for (int bank = 0; bank < linesPerKey; bank++) {
            double sum = 0;
            for (long i = 0; i < linesPerBank; i++, line++) {
                for (int word = 0; word < 8; word++) {
                    fill[word] = ones.applyAsInt(8 * line + word) / 64.0;
                }
                double matches = 0;
                for (int start = 0; start < starts; start++) {
                    double all = 1;
                    for (int word = start; word < start + hashes; word++) {
                        all *= fill[word & 7];
                    }
                    matches += all;
                }
                sum += matches / starts;
            }
            rate *= sum / linesPerBank;
        }
        return rate;
    }

    @Override
    long shape1() {
        return lines;
    }

    @Override
    int shape2a() {
        return hashes;
    }

    @Override
    int shape2b() {
        return linesPerKey;
    }
}
