package io.tamis;

import java.time.Instant;

/** Generations of blocked filters, of which the oldest is forgotten. */
final class WindowLayout extends Layout {
    private static final long[] SALTS = {
        0x243F6A8885A308D3L, 0x13198A2E03707345L, 0xA4093822299F31D1L, 0x082EFA98EC4E6C89L,
        0x452821E638D01377L, 0xBE5466CF34E90C6DL, 0xC0AC29B7C97C50DDL, 0x3F84D5B5B5470917L,
        0x9216D5D98979FB1BL, 0xD1310BA698DFB5ADL, 0x2FFD72DBD01ADFB7L, 0xB8E1AFED6A267E97L,
        0xBA7C9045F12C7F99L, 0x24A19947B3916CF7L, 0x0801F2E2858EFC17L, 0x636920D871574E69L
    };
    private static final long SHORTEST = 1_000;
    private static final long LONGEST = 20_000L * 366 * 86_400 * 1_000_000;
    /** Ten thousand years, to either side of 1970. */
    private static final long FURTHEST = LONGEST / 2;
    /** No moment: nothing was added yet. */
    private static final long NEVER = Long.MIN_VALUE;

    private final long rows;
    private final int columns;
    private final int block;
    private final int slices;
    private final boolean byKeys;
    private final long step;
    private final long head;

    private WindowLayout(long rows, int columns, int block, int slices, boolean byKeys, long step) {
        super(Kind.WINDOW);
        this.rows = rows;
        this.columns = columns;
        this.block = block;
        this.slices = slices;
        this.byKeys = byKeys;
        this.step = step;
        head = Bits.roundUp(4 + 2 * columns, 8);
    }

    static WindowLayout decode(long rows, int a, int b, long step) throws TamisException {
        if (a >>> 24 != 0 || b >>> 2 != 0) {
            throw TamisException.corrupt(
                    "shape of a window", "known flags", "0x" + Integer.toHexString(a) + ", 0x" + Integer.toHexString(b));
        }
        int columns = a & 0xFF;
        int block = a >>> 8 & 0xFF;
        int slices = a >>> 16;
        boolean byKeys = (b & 1) != 0;
        check("rows", "1 to 2^48", rows, 1, 1L << 48);
        check("columns", "3 to 64", columns, 3, 64);
        if (block != 4 && block != 8 && block != 16) {
            throw TamisException.corrupt("words of a block", "4, 8 or 16", block);
        }
        check("slices of a word", "1 to 6", slices, 1, 6);
        String steps = "1 ms to 20,000 years, or 1 to 2^56 keys";
        check("length of a generation", steps, step, byKeys ? 1 : SHORTEST, byKeys ? 1L << 56 : LONGEST);
        return new WindowLayout(rows, columns, block, slices, byKeys, step);
    }

    @Override
    long bytes() {
        return 8 * Bits.roundUp(head + rows * columns * block, 8);
    }

    @Override
    Layout complete(Words words, double promise) throws TamisException {
        long newest = Long.MIN_VALUE;
        for (int column = 0; column < columns; column++) {
            long word = words.get(4 + 2 * column);
            if (tag(word) != 0) {
                long own = Math.floorMod(generation(word), (long) columns);
                if (own != column) {
                    throw TamisException.corrupt("generation of a window", "in column " + own, column);
                }
                newest = Math.max(newest, generation(word));
            }
        }
        // Read after them: writers count before they begin a generation.
        if (byKeys && newest > counting(words)) {
            throw TamisException.corrupt(
                    "generation of a window", "at most " + counting(words) + ", by the keys that were added", newest);
        }
        return this;
    }

    private static long tag(long word) {
        return word & 15;
    }

    private static long generation(long word) {
        return (word >>> 4) - (1L << 58);
    }

    /** The generation that is being filled, where the clock counts keys. */
    private long counting(Words words) {
        long written = words.get(1);
        return (written < 0 ? 1L << 57 : Math.min(written, 1L << 57)) / step;
    }

    /** The generation of the newest key, or {@link #NEVER}. */
    private long newest(Words words) {
        if (byKeys) {
            return counting(words);
        }
        long latest = words.get(0);
        return latest == 0 ? NEVER : generationOf(latest ^ Long.MIN_VALUE);
    }

    private long generationOf(long micros) {
        return Math.floorDiv(Math.max(-FURTHEST, Math.min(FURTHEST, micros)), step);
    }

    /** As of now, but not before the last key added: nothing is lost by a clock that was set back. */
    @Override
    boolean contains(Words words, long hi, long lo) {
        long newest = newest(words);
        return newest != NEVER && contains(words, byKeys ? newest : Math.max(newest, generationOf(micros(Instant.now()))), hi, lo);
    }

    /** What asks as of a moment, which counts only where the clock doesn't count keys. */
    Probe askingAt(Words words, Instant at) {
        long micros = micros(at);
        return new Probe() {
            @Override
            boolean at(long hi, long lo) {
                return contains(words, byKeys ? counting(words) : generationOf(micros), hi, lo);
            }
        };
    }

    private static long micros(Instant at) {
        // Beyond the furthest moment no number of microseconds overflows.
        long seconds = Math.max(-FURTHEST / 1_000_000 - 1, Math.min(FURTHEST / 1_000_000 + 1, at.getEpochSecond()));
        return seconds * 1_000_000 + at.getNano() / 1_000;
    }

    private boolean contains(Words words, long asked, long hi, long lo) {
        long row = head + Bits.reduce(hi, rows) * columns * block;
        for (int column = 0; column < columns; column++) {
            long word = words.get(4 + 2 * column);
            if (tag(word) != 0 && generation(word) >= asked - (columns - 2) && has(words, row, column, tag(word), lo)) {
                return true;
            }
        }
        return false;
    }

    private boolean has(Words words, long row, int column, long tag, long lo) {
        for (int word = 0; word < block; word++) {
            long value = words.get(place(row, column, word));
            if (value >>> 60 != tag) {
                return false;
            }
            int length = 60 / slices;
            long fraction = lo * SALTS[word] >>> 32;
            for (int slice = 0; slice < slices; slice++) {
                long digit = fraction * length;
                if ((value >>> slice * length + (digit >>> 32) & 1) == 0) {
                    return false;
                }
                fraction = digit & 0xFFFFFFFFL;
            }
        }
        return true;
    }

    private long place(long row, int column, int word) {
        return row + word / 2 * 2 * columns + 2 * column + word % 2;
    }

    @Override
    long counted(Words words) {
        long newest = newest(words);
        long keys = 0;
        for (int column = 0; column < columns && newest != NEVER; column++) {
            if (isLive(words, column, newest)) {
                long more = words.get(5 + 2 * column);
                keys = more < 0 || keys + more < 0 ? Long.MAX_VALUE : keys + more;
            }
        }
        return keys;
    }

    private boolean isLive(Words words, int column, long asked) {
        long word = words.get(4 + 2 * column);
        return tag(word) != 0 && generation(word) >= asked - (columns - 2);
    }

    @Override
    double keysNow(Words words) {
        return counted(words);
    }

    @Override
    double rateNow(Words words) {
        long newest = newest(words);
        double all = 0;
        for (long row = 0; row < rows && newest != NEVER; row++) {
            double logs = 0;
            for (int column = 0; column < columns; column++) {
                if (isLive(words, column, newest)) {
                    logs += Floats.log1p(-blockRate(words, head + row * columns * block, column));
                }
            }
            all += any(logs);
        }
        return all / rows;
    }

    /** The chance that a foreign key of this row finds its bits in a column's block. */
    private double blockRate(Words words, long row, int column) {
        long tag = tag(words.get(4 + 2 * column));
        int length = 60 / slices;
        double rate = 1;
        for (int word = 0; word < block; word++) {
            long value = words.get(place(row, column, word));
            if (value >>> 60 != tag) {
                return 0;
            }
            for (int slice = 0; slice < slices; slice++) {
                rate *= Long.bitCount(value >>> slice * length & (1L << length) - 1) / (double) length;
            }
        }
        return rate;
    }
}
