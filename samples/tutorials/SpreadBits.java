import java.util.BitSet;

/**
 * The BitSet class of many tutorials, written anew: one mask for each seed over a spread hashCode.
 *
 * <p>java SpreadBits.java LOG2 [mended]: a filter of 2^LOG2 bits is given a million URLs and asked for a million others.
 */
public class SpreadBits {
    static final int[] SEEDS = {1, 6, 16, 38, 58, 68};
    static final int KEYS = 1_000_000;

    final int log2;
    final boolean mended;
    final BitSet bits;

    SpreadBits(int log2, boolean mended) {
        this.log2 = log2;
        this.mended = mended;
        bits = new BitSet(1 << log2);
    }

    int position(String key, int seed) {
        int h = key.hashCode();
        return mended
            ? (int) (mix(h + seed * 0x9E3779B97F4A7C15L) >>> (64 - log2))
            : seed * ((1 << log2) - 1) & (h ^ (h >>> 16));
    }

    /** Every bit of the result depends on every bit of the argument. */
    static long mix(long x) {
        x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
        x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
        return x ^ (x >>> 31);
    }

    void add(String key) {
        for (int seed : SEEDS) bits.set(position(key, seed));
    }

    boolean contains(String key) {
        for (int seed : SEEDS) if (!bits.get(position(key, seed))) return false;
        return true;
    }

    static String url(int number) {
        return "https://example.org/page/" + number;
    }

    public static void main(String[] args) {
        SpreadBits filter = new SpreadBits(Integer.parseInt(args[0]), args.length > 1);
        int refused = 0, yes = 0;
        for (int i = 0; i < KEYS; i++) {
            try {
                filter.add(url(i));
            } catch (IndexOutOfBoundsException error) {
                refused++;
            }
        }
        System.out.printf("%,d of %,d keys: IndexOutOfBoundsException%n", refused, KEYS);
        if (refused > 0) return;
        for (int i = KEYS; i < 2 * KEYS; i++) if (filter.contains(url(i))) yes++;
        double set = -Math.expm1(-(double) KEYS * SEEDS.length / (1 << filter.log2));
        System.out.printf("false yes: %.6f, and %.6f by the formula%n",
            (double) yes / KEYS, Math.pow(set, SEEDS.length));
        System.out.printf("memory: %.1f MB instead of %.1f MB%n", filter.bits.length() / 8e6, (1 << filter.log2) / 8e6);
    }
}
