// Guava's side of `bench -- formats`: java GuavaBench FILTER PRESENT ABSENT, whose keys are lines. After each line of the
// standard input, asks all keys and prints the nanoseconds a key took, present and absent, and how many were found.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;

public final class GuavaBench {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    public static void main(String[] arguments) throws Exception {
        BloomFilter<byte[]> filter;
        try (InputStream in = new BufferedInputStream(new FileInputStream(arguments[0]), 1 << 20)) {
            filter = BloomFilter.readFrom(in, Funnels.byteArrayFunnel());
        }
        byte[][] present = keys(arguments[1]);
        byte[][] absent = keys(arguments[2]);
        // Warm before the first is measured.
        for (int i = 0; i < 5; i++) {
            ask(filter, present);
            ask(filter, absent);
        }
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        while (commands.readLine() != null) {
            System.out.println(ask(filter, present) + " " + ask(filter, absent));
            System.out.flush();
        }
    }

    private static String ask(BloomFilter<byte[]> filter, byte[][] keys) {
        long start = CLOCK.getCurrentThreadCpuTime();
        int found = 0;
        for (byte[] key : keys) {
            if (filter.mightContain(key)) {
                found++;
            }
        }
        double each = (double) (CLOCK.getCurrentThreadCpuTime() - start) / keys.length;
        return each + " " + found;
    }

    private static byte[][] keys(String path) throws Exception {
        List<String> lines = Files.readAllLines(Paths.get(path));
        return lines.stream().map(line -> line.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
    }
}
