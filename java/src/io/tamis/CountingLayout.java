package io.tamis;

/**
 * A blocked filter with a 4-bit counter for each bit. A counter of 15 never changes again: how much it stands for is
 * not known any more.
 */
final class CountingLayout extends BitLayout {
    private static final int WORDS_PER_LINE = 32;
    private static final long LOWEST = 0x1111111111111111L;

    final BlockedLayout bits;

    CountingLayout(BlockedLayout bits) {
        super(Kind.COUNTING);
        this.bits = bits;
    }

    @Override
    long bytes() {
        return 4 * bits.bytes();
    }

    /** The first word of the key's line in a bank. */
    private long line(int bank, long hi) {
        return (bank * bits.linesPerBank + Bits.reduce(hi, bits.linesPerBank)) * WORDS_PER_LINE;
    }

    /**
     * The word of the line with the key's counter in a word of bits; in it, the counter begins at four times the
     * position.
     */
    private static int wordOf(int word, long position) {
        return 4 * word + (int) (position >>> 4 & 3);
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        for (int bank = 0; bank < bits.linesPerKey; bank++) {
            long line = line(bank, hi);
            int start = (int) (lo >>> 61);
            boolean all = true;
            for (int i = start; i < start + bits.hashes; i++) {
                int word = i & 7;
                long position = lo >>> 6 * word;
                all &= (words.get(line + wordOf(word, position)) >>> 4 * position & 15) != 0;
            }
            if (!all) {
                return false;
            }
            hi = Bits.mix(hi);
            lo = Bits.mix(lo);
        }
        return true;
    }

    @Override
    boolean put(long[] words, long hi, long lo) {
        boolean isNew = false;
        for (int bank = 0; bank < bits.linesPerKey; bank++) {
            int line = (int) line(bank, hi);
            int start = (int) (lo >>> 61);
            for (int i = start; i < start + bits.hashes; i++) {
                int word = i & 7;
                long position = lo >>> 6 * word;
                isNew |= change(words, line + wordOf(word, position), 4 * position, 1) == 0;
            }
            hi = Bits.mix(hi);
            lo = Bits.mix(lo);
        }
        return isNew;
    }

    /** Takes one from each of the key's counters. */
    void remove(long[] words, long hi, long lo) {
        for (int bank = 0; bank < bits.linesPerKey; bank++) {
            int line = (int) line(bank, hi);
            int start = (int) (lo >>> 61);
            for (int i = start; i < start + bits.hashes; i++) {
                int word = i & 7;
                long position = lo >>> 6 * word;
                change(words, line + wordOf(word, position), 4 * position, -1);
            }
            hi = Bits.mix(hi);
            lo = Bits.mix(lo);
        }
    }

    /** One more or one less, except of 15, and none less than 0; what the counter was. */
    private static long change(long[] words, int index, long shift, int by) {
        while (true) {
            long old = (long) Words.OnHeap.WORDS.getOpaque(words, index);
            long counter = old >>> shift & 15;
            if (counter == 15 || counter + by < 0) {
                return counter;
            }
            if (Words.OnHeap.WORDS.compareAndSet(words, index, old, old + ((long) by << shift))) {
                return counter;
            }
        }
    }

    /** The sums: as if the keys of both had been added to one. */
    @Override
    void unite(long[] words, int index, long theirs) {
        while (true) {
            long old = (long) Words.OnHeap.WORDS.getOpaque(words, index);
            long sums = 0;
            for (int shift = 0; shift < 64; shift += 4) {
                sums |= Math.min((old >>> shift & 15) + (theirs >>> shift & 15), 15) << shift;
            }
            if (Words.OnHeap.WORDS.compareAndSet(words, index, old, sums)) {
                return;
            }
        }
    }

    @Override
    void checkLike(Layout other) {
        bits.checkLike(((CountingLayout) other).bits);
    }

    private static int used(long word) {
        return Long.bitCount((word | word >>> 1 | word >>> 2 | word >>> 3) & LOWEST);
    }

    @Override
    double keysNow(Words words) {
        long used = 0;
        for (long i = 0; i < words.length(); i++) {
            used += used(words.get(i));
        }
        return bits.keysFromOnes(used);
    }

    @Override
    double rateNow(Words words) {
        return bits.rateNow(word -> {
            int used = 0;
            for (int i = 0; i < 4; i++) {
                used += used(words.get(4 * word + i));
            }
            return used;
        });
    }

    @Override
    long shape1() {
        return bits.lines;
    }

    @Override
    int shape2a() {
        return bits.hashes;
    }

    @Override
    int shape2b() {
        return bits.linesPerKey;
    }
}
