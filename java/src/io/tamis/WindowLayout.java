package io.tamis;

import java.time.Instant;

/** Fingerprints with the generation in which they were seen, of which the oldest is forgotten. */
final class WindowLayout extends Layout {
    private static final long SHORTEST = 1_000;
    private static final long LONGEST = 20_000L * 366 * 86_400 * 1_000_000;
    /** Ten thousand years, to either side of 1970. */
    private static final long FURTHEST = LONGEST / 2;
    /** No generation: nothing was added yet. */
    private static final long NEVER = Long.MIN_VALUE;
    private static final int[] WIDTHS = {16, 21, 32, 64};
    private static final long PAGE = 4096;

    private final Table[] tables;
    private final boolean byKeys;
    private final long step;
    private final long inSpan;
    private final int stampBits;

    /** A table, by the numbers of its words. */
    private static final class Table {
        final long ring;
        final long epochs;
        final long first;
        final long bins;
        final int binWords;
        final int width;

        Table(long ring, long bins, int binWords, int width, int stampBits) {
            this.ring = ring;
            this.bins = bins;
            this.binWords = binWords;
            this.width = width;
            epochs = ring + Bits.roundUp(1L << stampBits, 8);
            first = epochs + Bits.roundUp(-Math.floorDiv(-bins * binWords, PAGE), 8);
        }

        long end() {
            return first + Bits.roundUp(bins * binWords, 8);
        }

        /** Fingerprints that differ. */
        long prints(int stampBits) {
            return (1L << width - stampBits - 1) - 1;
        }
    }

    private WindowLayout(Table[] tables, boolean byKeys, long step, long inSpan, int stampBits) {
        super(Kind.WINDOW);
        this.tables = tables;
        this.byKeys = byKeys;
        this.step = step;
        this.inSpan = inSpan;
        this.stampBits = stampBits;
    }

    static WindowLayout decode(long bins, int a, int b, long span) throws TamisException {
        if (b >>> 2 != 0) {
            throw TamisException.corrupt("flags of a window", "at most 3", Integer.toUnsignedString(b));
        }
        int generations = a & 0xFF;
        int width = a >>> 8 & 0xFF;
        int binWords = a >>> 16 & 0xFF;
        int count = a >>> 24;
        boolean byKeys = (b & 1) != 0;
        check("generations", "1 to 62", generations, 1, 62);
        check("width of slots", "16, 21, 32 or 64 bits", width, 0, 3);
        boolean isBin = binWords == 2 || binWords == 4 || binWords == 8;
        if (!isBin || load(64 / WIDTHS[width] * binWords) == 0) {
            throw TamisException.corrupt("words of a bin", "2, 4 or 8 with 6 slots or more", binWords);
        }
        check("bins", "2 to 2^48", bins, 2, 1L << 48);
        check("tables of a window", "1 to 24", count, 1, 24);
        long step = Long.divideUnsigned(span, generations) + (Long.remainderUnsigned(span, generations) == 0 ? 0 : 1);
        String steps = "1 ms to 20,000 years, or 1 to 2^56 keys";
        check("length of a generation", steps, step, byKeys ? 1 : SHORTEST, byKeys ? 1L << 56 : LONGEST);
        long inSpan = (span + step - 1) / step;
        long kept = inSpan + 2;
        int stampBits = 64 - Long.numberOfLeadingZeros(kept + Math.max(kept / 2, 4) - 1);
        Table[] tables = new Table[count];
        tables[0] = new Table(8, bins, binWords, WIDTHS[width], stampBits);
        int slots = 64 / WIDTHS[width] * binWords;
        long room = bins * slots * load(slots) / 256;
        for (int i = 1; i < count; i++) {
            int wide = Math.min(width + i, 3);
            int words = wide == 3 ? 8 : 4;
            int grown = 64 / WIDTHS[wide] * words;
            if (room > 1L << 54 - i) {
                throw TamisException.corrupt("bins", "fewer than fill 2^60 bytes", bins);
            }
            // At most 2^54 times 256: a table of so many slots is too large anyway.
            long each = grown * load(grown);
            long all = Math.max(2, -Math.floorDiv(-((room << i) * 256), each));
            tables[i] = new Table(tables[i - 1].end(), all, words, WIDTHS[wide], stampBits);
            if (tables[i].end() >= 1L << 57) {
                throw TamisException.corrupt("bins", "fewer than fill 2^60 bytes", bins);
            }
        }
        return new WindowLayout(tables, byKeys, step, inSpan, stampBits);
    }

    /** The share of slots, in 256ths, that keys may take in bins of so many; 0 for other sizes. */
    private static long load(int slots) {
        switch (slots) {
            case 6:
                return 208;
            case 8:
                return 218;
            case 12:
                return 230;
            case 16:
                return 236;
            case 24:
                return 245;
            case 32:
                return 248;
            default:
                return 0;
        }
    }

    @Override
    long bytes() {
        return 8 * tables[tables.length - 1].end();
    }

    @Override
    Layout complete(Words words, double promise) throws TamisException {
        long last = NEVER;
        for (Table table : tables) {
            for (long page = table.epochs; page < table.first; page++) {
                last = Math.max(last, epoch(words.get(page)));
            }
        }
        // Read after them: writers let time pass before they write.
        long newest = newest(words);
        if (last > newest) {
            String expected = "at most " + (newest == NEVER ? 0 : newest);
            throw TamisException.corrupt("epoch of a window's page", expected, last);
        }
        return this;
    }

    private static long epoch(long word) {
        return word == 0 ? NEVER : (word & (1L << 61) - 1) - (1L << 60);
    }

    /** The generation that is being filled, where the clock counts keys. */
    private long counting(Words words) {
        long added = words.get(1);
        return (added < 0 ? 1L << 57 : Math.min(added, 1L << 57)) / step;
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
        for (Table table : tables) {
            long print = 1 + Bits.reduce(lo, table.prints(stampBits));
            long home = Bits.reduce(hi, table.bins);
            long second = home + 1 + Bits.reduce(print * 0x9E3779B97F4A7C15L, table.bins - 1);
            second = second >= table.bins ? second - table.bins : second;
            // In this order: keys move from home to their second bin.
            if (has(words, table, home, print, false, asked - inSpan)
                    || has(words, table, second, print, true, asked - inSpan)) {
                return true;
            }
        }
        return false;
    }

    private boolean has(Words words, Table table, long bin, long print, boolean isSecond, long oldest) {
        int low = table.width - stampBits;
        long moved = 1L << low - 1;
        long value = print | (isSecond ? moved : 0);
        long page = table.epochs + bin * table.binWords / PAGE;
        while (true) {
            long before = words.get(page);
            boolean found = false;
            for (int word = 0; word < table.binWords && before != 0; word++) {
                long slots = words.get(table.first + bin * table.binWords + word);
                for (int slot = 0; slot < 64 / table.width; slot++) {
                    long there = slots >>> slot * table.width & (1L << low) - 1;
                    if (there == value || there == moved && words.get(2) != 0) {
                        found |= generation(slots >>> slot * table.width + low, epoch(before)) >= oldest;
                    }
                }
            }
            // Stamps are read by the page's epoch: if a writer has changed it meanwhile, once more.
            if (words.get(page) == before) {
                return found;
            }
        }
    }

    private long generation(long stamp, long epoch) {
        return epoch - (epoch - stamp & (1L << stampBits) - 1);
    }

    @Override
    long counted(Words words) {
        long newest = newest(words);
        long keys = 0;
        for (Table table : tables) {
            keys += newest == NEVER ? 0 : counted(words, table, newest);
        }
        return keys;
    }

    /** Keys of a table in the generations that are asked as of the newest. */
    private long counted(Words words, Table table, long newest) {
        long keys = 0;
        for (long generation = newest - inSpan; generation <= newest; generation++) {
            long count = words.get(table.ring + (generation & (1L << stampBits) - 1));
            if (count >>> 40 == (generation & 0xFFFFFF)) {
                keys += count & (1L << 40) - 1;
            }
        }
        return keys;
    }

    @Override
    double keysNow(Words words) {
        return counted(words);
    }

    @Override
    double rateNow(Words words) {
        long newest = newest(words);
        double absent = 1;
        for (Table table : tables) {
            if (newest != NEVER) {
                absent *= absent(words, table, newest);
            }
        }
        return 1.0 - absent;
    }

    /** The share of foreign keys that a table doesn't take for present. */
    private double absent(Words words, Table table, long newest) {
        long entries = counted(words, table, newest);
        long fullBins = 0;
        if (words.get(2) != 0) {
            entries = 0;
            int low = table.width - stampBits;
            for (long word = 0; word < table.bins * table.binWords; word++) {
                long epoch = epoch(words.get(table.epochs + word / PAGE));
                long slots = words.get(table.first + word);
                for (int slot = 0; slot < 64 / table.width && epoch != NEVER; slot++) {
                    long value = slots >>> slot * table.width & (1L << low) - 1;
                    long generation = generation(slots >>> slot * table.width + low, epoch);
                    if (value != 0 && generation >= newest - inSpan) {
                        entries += value == 1L << low - 1 ? 0 : 1;
                        fullBins += value == 1L << low - 1 ? 1 : 0;
                    }
                }
            }
        }
        double open = Math.max(0, 1.0 - fullBins / (double) table.bins);
        double different = table.bins * (double) table.prints(stampBits);
        return open * open * StrictMath.exp(entries * Floats.log1p(-1.0 / different));
    }
}
