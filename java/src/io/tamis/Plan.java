package io.tamis;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;

/**
 * From keys and a rate to a geometry. The numbers are those of every other Tamis library: equal parameters make equal
 * files.
 */
final class Plan {
    private Plan() {}

    private static final double MIN_RATE = 1e-15;

    static BitLayout of(Kind kind, long keys, double rate) {
        if (keys < 1) {
            throw new IllegalArgumentException("number of keys: expected at least 1, got " + keys);
        }
        if (!(rate >= MIN_RATE && rate < 1)) {
            throw new IllegalArgumentException("rate: expected at least 1e-15 and below 1, got " + Floats.shown(rate));
        }
        switch (kind) {
            case BLOOM:
                return bloom(keys, rate);
            case BLOCKED:
                return blocked(keys, rate);
            case COUNTING:
                return new CountingLayout(blocked(keys, rate));
            case FUSE:
            case RIBBON:
            case CASCADE:
                throw new IllegalArgumentException(
                        kind + " filters can't be created empty: build it from all its keys with tamis build, or create a blocked filter");
            default:
                throw new IllegalArgumentException(
                        kind + " filters can't be created in Java: create it with tamis create, or create a blocked filter");
        }
    }

    private static IllegalArgumentException tooLarge(long keys, double rate) {
        return new IllegalArgumentException(
                "size: expected below 2^60 bytes, got more for " + keys + " keys at a rate of " + Floats.shown(rate));
    }

    // Bloom.

    private static final double LN2 = 0.693147180559945309417232121458;
    /** The rounding of the number of hashes costs up to this much of the rate, which the textbook accepts. */
    private static final double ROUNDED_HASHES = 1.01;
    /** Up to this size the second order is not enough for many hashes ... */
    private static final long EXACT_BITS = 512;
    /** ... unless there are so many balls in a bin that hardly one is empty. */
    private static final double EXACT_BALLS_PER_BIT = 8;

    private static BloomLayout bloom(long keys, double rate) {
        double bits = Math.max(Math.floor(-(double) keys * Floats.log(rate) / (LN2 * LN2)), 1);
        int hashes = (int) Math.max(Math.floor(LN2 * (bits / keys) + 0.5), 1);
        while (true) {
            if (bits >= 0x1p63 || hashes > 64) {
                throw tooLarge(keys, rate);
            }
            if (rateOfBits((long) bits, hashes, keys) <= rate * ROUNDED_HASHES) {
                return new BloomLayout((long) bits, hashes);
            }
            bits = Math.max(bits * 1.001, bits + 1);
        }
    }

    private static double rateOfBits(long bits, int hashes, double keys) {
        double m = bits;
        double k = hashes;
        double balls = k * keys;
        if (bits <= EXACT_BITS && Floats.power(k, 3) > m && balls <= EXACT_BALLS_PER_BIT * m) {
            return exactRate((int) bits, hashes, balls);
        }
        // Mean and variance of the share of occupied bins, then the k-th moment to second order.
        double empty = StrictMath.exp(balls * Floats.log1p(-1.0 / m));
        double bothEmpty = StrictMath.exp(balls * Floats.log1p(-2.0 / m));
        double fill = 1 - empty;
        if (m < 2 || fill <= 0) {
            return Math.max(0, Math.min(1, fill));
        }
        double variance = Math.max(empty / m + bothEmpty * (1 - 1.0 / m) - empty * empty, 0);
        double moment = StrictMath.pow(fill, k) * (1 + k * (k - 1) / 2 * variance / (fill * fill));
        return Math.min(moment + keys * 0x1p-128, 1);
    }

    /** The k-th moment of the share of occupied bins, from the chance of every number of them. */
    private static double exactRate(int bins, int hashes, double balls) {
        var chances = new double[bins + 1];
        chances[0] = 1;
        for (long i = 0; i < (long) balls; i++) {
            throwBall(chances, bins);
        }
        double low = moment(chances, bins, hashes);
        throwBall(chances, bins);
        return low + (moment(chances, bins, hashes) - low) * (balls - Math.floor(balls));
    }

    private static void throwBall(double[] chances, int bins) {
        for (int occupied = bins; occupied >= 1; occupied--) {
            chances[occupied] = chances[occupied] * ((double) occupied / bins)
                    + chances[occupied - 1] * (1 - (double) (occupied - 1) / bins);
        }
        chances[0] = 0;
    }

    private static double moment(double[] chances, int bins, int hashes) {
        double sum = 0;
        for (int occupied = 0; occupied <= bins; occupied++) {
            sum += chances[occupied] * Floats.power((double) occupied / bins, hashes);
        }
        return sum;
    }

    // Blocked and counting. A foreign key finds its bits in a line unless one of them is still unset; what is set
    // follows by inclusion and exclusion over the subsets of the foreign key's words. This is exact, however small the
    // filter.

    /** What fewer lines a key may cost, in memory: each of them is a cache miss. */
    private static final double FEWER_LINES = 1.08;
    /** Terms cancel each other to about 1e-15; a line's rate that is lower than this is taken for this. */
    private static final double RESOLUTION = 1e-13;
    /**
     * For one to eight bits a line: pairs of the chance that a key sets one of some bits, and how many more such sets
     * are even than odd.
     */
    private static final double[][] TERMS = new double[BlockedLayout.MAX_HASHES][];

    static {
        for (int k = 1; k <= TERMS.length; k++) {
            TERMS[k - 1] = terms(k);
        }
    }

    private static double[] terms(int k) {
        int fromFirst = (1 << k) - 1;
        var alike = new TreeMap<int[], Double>(Arrays::compare);
        for (int set = 0; set <= fromFirst; set++) {
            var beside = new int[8];
            for (int first = 0; first < 8; first++) {
                int cover = (fromFirst << first | fromFirst >> 8 - first) & 255;
                beside[first] = Integer.bitCount(set & cover);
            }
            Arrays.sort(beside);
            alike.merge(beside, Integer.bitCount(set) % 2 == 0 ? 1.0 : -1.0, Double::sum);
        }
        var terms = new double[2 * alike.size()];
        int at = 0;
        for (var term : alike.entrySet()) {
            double hits = 0;
            for (int bits : term.getKey()) {
                hits += 1 - Floats.power(63.0 / 64.0, bits);
            }
            terms[at++] = hits / 8;
            terms[at++] = term.getValue();
        }
        return terms;
    }

    private static double rateOfLines(int k, int perKey, double keys, double linesPerBank) {
        double[] terms = TERMS[k - 1];
        double sum = 0;
        for (int i = 0; i < terms.length; i += 2) {
            sum += terms[i + 1] * StrictMath.expm1(keys * Floats.log1p(-terms[i] / linesPerBank));
        }
        double line = Math.max(RESOLUTION, Math.min(1, sum));
        // Keys whose low halves are equal have equal bits in all lines, if they have the same lines.
        double same = keys * 0x1p-64 * (Floats.power(linesPerBank, -perKey) + 0x1p-64);
        return Math.min(Floats.power(line, perKey) + same, 1);
    }

    /** How many lines there must be, a multiple of those of a key; -1 if 2^54 are not enough. */
    private static long linesFor(double keys, double rate, int k, int perKey) {
        long low = 1;
        long high = BlockedLayout.MAX_LINES / perKey;
        double reached = rateOfLines(k, perKey, keys, low);
        if (reached <= rate) {
            return perKey;
        }
        double above = Floats.log(reached / rate);
        reached = rateOfLines(k, perKey, keys, high);
        if (reached > rate) {
            return -1;
        }
        double below = Floats.log(reached / rate);
        // The first keeps it not, the last does. Orders of magnitude come first; then where a straight line from end to
        // end crosses the rate. An end that stays counts half each time (the Illinois rule), or it would stay for good.
        long stays = -1;
        while (high - low > 1) {
            boolean isFar = low < high / 4;
            double guess = isFar ? Math.sqrt((double) low * high) : low + (high - low) * (above / (above - below));
            long middle = Math.max(low + 1, Math.min(high - 1, (long) guess));
            reached = rateOfLines(k, perKey, keys, middle);
            double distance = Floats.log(reached / rate);
            if (reached <= rate) {
                high = middle;
                below = distance;
                above /= stays == low ? 2 : 1;
                stays = isFar ? -1 : low;
            } else {
                low = middle;
                above = distance;
                below /= stays == high ? 2 : 1;
                stays = isFar ? -1 : high;
            }
        }
        return high * perKey;
    }

    /** The smallest shape for a rate, but with the fewest lines a key that cost little. */
    private static BlockedLayout blocked(long keys, double rate) {
        List<BlockedLayout> each = new ArrayList<>();
        long best = Long.MAX_VALUE;
        for (int perKey = 1; perKey <= BlockedLayout.MAX_LINES_PER_KEY; perKey++) {
            BlockedLayout smallest = null;
            for (int k = 1; k <= BlockedLayout.MAX_HASHES; k++) {
                long lines = linesFor(keys, rate, k, perKey);
                if (lines > 0 && (smallest == null || lines < smallest.lines)) {
                    smallest = new BlockedLayout(lines, k, perKey);
                }
            }
            if (smallest != null) {
                each.add(smallest);
                best = Math.min(best, smallest.lines);
            }
        }
        for (BlockedLayout layout : each) {
            if (layout.lines <= best * FEWER_LINES) {
                return layout;
            }
        }
        throw tooLarge(keys, rate);
    }
}
