package io.tamis;

/** Layers of blocked filters, each behind a line that describes it. */
final class GrowingLayout extends Layout {
    private final long lines;
    private final int hashes;
    private final int linesPerKey;
    private final int count;
    /** Oldest first, and where each begins; null until the body was read. */
    private final BlockedLayout[] layers;

    private final long[] at;

    private GrowingLayout(long lines, int hashes, int linesPerKey, int count, BlockedLayout[] layers, long[] at) {
        super(Kind.GROWING);
        this.lines = lines;
        this.hashes = hashes;
        this.linesPerKey = linesPerKey;
        this.count = count;
        this.layers = layers;
        this.at = at;
    }

    static GrowingLayout decode(long lines, int hashes, int linesPerKey, long layers) throws TamisException {
        check("layers", "1 to 1000", layers, 1, 1000);
        if (Long.compareUnsigned(lines, 2 * layers) < 0) {
            throw TamisException.corrupt("lines", "at least two for each layer", lines);
        }
        BlockedLayout.decode(lines - layers, hashes, linesPerKey);
        return new GrowingLayout(lines, hashes, linesPerKey, (int) layers, null, null);
    }

    @Override
    long bytes() {
        return lines * 64;
    }

    @Override
    Layout complete(Words words, double promise) throws TamisException {
        var found = new BlockedLayout[count];
        var begins = new long[count];
        int number = 0;
        long capacities = 0;
        double rates = 0;
        for (long next = 0; next < lines; ) {
            if (number == count) {
                throw TamisException.corrupt("layers", count, "more");
            }
            long first = 8 * next;
            long size = words.get(first);
            if (size < 1 || size > BlockedLayout.MAX_LINES || size % linesPerKey != 0) {
                throw TamisException.corrupt(
                        "lines of a layer", "1 to 2^54, a multiple of the lines per key", Long.toUnsignedString(size));
            }
            long capacity = words.get(first + 1);
            if (capacity == 0) {
                throw TamisException.corrupt("capacity of a layer", "at least 1", 0);
            }
            long keys = words.get(first + 2);
            if (Long.compareUnsigned(keys, capacity) > 0) {
                throw TamisException.corrupt(
                        "keys of a layer", "at most its capacity of " + Long.toUnsignedString(capacity), Long.toUnsignedString(keys));
            }
            double rate = Double.longBitsToDouble(words.get(first + 3));
            if (!(rate > 0 && rate < 1)) {
                throw TamisException.corrupt("rate of a layer", "between 0 and 1", Floats.plain(rate));
            }
            for (int i = 4; i < 8; i++) {
                if (words.get(first + i) != 0) {
                    throw TamisException.corrupt("reserved words of a layer", 0, "other");
                }
            }
            long rest = lines - next - 1;
            if (size > rest) {
                throw TamisException.corrupt("lines of a layer", "at most " + rest + ", as the body has", size);
            }
            if (Long.compareUnsigned(capacities + capacity, capacities) < 0) {
                throw TamisException.corrupt("capacity of a layer", "a number of keys", Long.toUnsignedString(capacity));
            }
            capacities += capacity;
            rates += rate;
            if (rates > promise * (1 + 1e-9)) {
                throw TamisException.corrupt("rate of a layer", "its share of the promise", Floats.plain(rate));
            }
            found[number] = new BlockedLayout(size, hashes, linesPerKey);
            begins[number] = first + 8;
            number++;
            next += 1 + size;
        }
        if (number != count) {
            throw TamisException.corrupt("layers", count, number);
        }
        return new GrowingLayout(lines, hashes, linesPerKey, count, found, begins);
    }

    /** Newest first. */
    @Override
    boolean contains(Words words, long hi, long lo) {
        for (int i = layers.length - 1; i >= 0; i--) {
            if (layers[i].contains(words, at[i], hi, lo)) {
                return true;
            }
        }
        return false;
    }

    @Override
    double keysNow(Words words) {
        double keys = 0;
        for (int i = 0; i < layers.length; i++) {
            long ones = 0;
            for (long word = at[i]; word < at[i] + 8 * layers[i].lines; word++) {
                ones += Long.bitCount(words.get(word));
            }
            keys += layers[i].keysFromOnes(ones);
        }
        return keys;
    }

    @Override
    double rateNow(Words words) {
        double logs = 0;
        for (int i = 0; i < layers.length; i++) {
            long first = at[i];
            logs += Floats.log1p(-layers[i].rateNow(word -> Long.bitCount(words.get(first + word))));
        }
        return any(logs);
    }
}
