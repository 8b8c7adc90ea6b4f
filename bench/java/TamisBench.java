// tamis-java next to Guava, in one warm Java machine: java TamisBench [KEYS [ROUNDS]]. Filters of KEYS keys of 16 to 40
// bytes at a rate of 0.01 are asked for a million of them in random order, and for as many that were not added. Prints
// lines NAME<TAB>NANOSECONDS: the best round, in time of the processor, since other programs may run.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import io.tamis.TamisFilter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;

public final class TamisBench {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    private static final double RATE = 0.01;
    private static final int ASKED = 1_000_000;

    private static final Map<String, Double> BEST = new TreeMap<>();

    /** Asks all keys; how many were found. Each contender has a loop of its own, which the compiler fits to it. */
    private interface Loop {
        int over(byte[][] keys);
    }

    public static void main(String[] arguments) throws Exception {
        long keys = arguments.length > 0 ? Long.parseLong(arguments[0]) : 1_000_000;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 10;
        TamisFilter tamis = TamisFilter.of(keys, RATE);
        BloomFilter<byte[]> guava = BloomFilter.create(Funnels.byteArrayFunnel(), keys, RATE);
        for (long i = 0; i < keys; i++) {
            byte[] key = key(i);
            tamis.put(key);
            guava.put(key);
        }
        Path file = Files.createTempFile("bench", ".tamis");
        tamis.save(file);
        TamisFilter mapped = TamisFilter.open(file);
        Files.delete(file);

        byte[][] present = sample(0, keys);
        byte[][] absent = sample(keys, 2 * keys);
        Map<String, Loop> contenders = new TreeMap<>();
        contenders.put("guava", some -> guava(some, guava));
        contenders.put("tamis", some -> tamis(some, tamis));
        contenders.put("tamis mapped", some -> mapped(some, mapped));
        contenders.put("tamis all at once", some -> atOnce(some, tamis));
        for (int round = -5; round < rounds; round++) {
            if (round == 0) {
                BEST.clear(); // until now it was warming up
            }
            contenders.forEach((name, loop) -> {
                measure(name + " present", loop, present, ASKED, ASKED);
                measure(name + " absent", loop, absent, 0, ASKED / 50);
            });
        }
        BEST.forEach((name, nanoseconds) -> System.out.printf("%s\t%.2f%n", name, nanoseconds));
    }

    private static void measure(String name, Loop loop, byte[][] keys, int least, int most) {
        long start = CLOCK.getCurrentThreadCpuTime();
        int found = loop.over(keys);
        double each = (double) (CLOCK.getCurrentThreadCpuTime() - start) / keys.length;
        if (found < least || found > most) {
            throw new AssertionError(name + ": " + found + " found");
        }
        BEST.merge(name, each, Math::min);
    }

    private static int guava(byte[][] keys, BloomFilter<byte[]> filter) {
        int found = 0;
        for (byte[] key : keys) {
            found += filter.mightContain(key) ? 1 : 0;
        }
        return found;
    }

    private static int tamis(byte[][] keys, TamisFilter filter) {
        int found = 0;
        for (byte[] key : keys) {
            found += filter.mightContain(key) ? 1 : 0;
        }
        return found;
    }

    private static int mapped(byte[][] keys, TamisFilter filter) {
        int found = 0;
        for (byte[] key : keys) {
            found += filter.mightContain(key) ? 1 : 0;
        }
        return found;
    }

    private static int atOnce(byte[][] keys, TamisFilter filter) {
        int found = 0;
        for (boolean answer : filter.mightContainAll(Arrays.asList(keys))) {
            found += answer ? 1 : 0;
        }
        return found;
    }

    private static byte[][] sample(long from, long to) {
        var random = new SplittableRandom(31);
        var keys = new byte[ASKED][];
        for (int i = 0; i < ASKED; i++) {
            keys[i] = key(random.nextLong(from, to));
        }
        return keys;
    }

    /** Such as 4711-example-exam: 16 to 40 bytes. */
    private static byte[] key(long number) {
        byte[] key = FILLER.substring(0, 16 + (int) (number * 0x9E3779B97F4A7C15L >>> 40) % 25).getBytes(StandardCharsets.US_ASCII);
        byte[] digits = Long.toString(number).getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(digits, 0, key, 0, digits.length);
        return key;
    }

    private static final String FILLER = "----------example-example-example-example";
}
