// Spark's sketches, asked by the tests: commands come as lines, answers go as lines. Keys are in files, one a line:
// text, or numbers.
//
//   make VERSION string|long KEYS RATE FILE KEY-FILE    a filter with these keys
//   ask string|long FILE KEY-FILE REWRITTEN             "1" or "0" for each key; writes the filter again

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.spark.util.sketch.BloomFilter;

public final class SparkPeer {
    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            System.out.println(run(line.split("\t")));
            System.out.flush();
        }
    }

    private static String run(String[] words) throws Exception {
        if (words[0].equals("make")) {
            long keys = Long.parseLong(words[3]);
            long bits = BloomFilter.optimalNumOfBits(keys, Double.parseDouble(words[4]));
            BloomFilter.Version version = words[1].equals("1") ? BloomFilter.Version.V1 : BloomFilter.Version.V2;
            BloomFilter filter = BloomFilter.create(version, keys, bits, 0);
            for (String key : Files.readAllLines(Paths.get(words[6]))) {
                if (words[2].equals("long")) {
                    filter.putLong(Long.parseLong(key));
                } else {
                    filter.putString(key);
                }
            }
            try (OutputStream out = new FileOutputStream(words[5])) {
                filter.writeTo(out);
            }
            return "made";
        }
        BloomFilter filter;
        try (InputStream in = new FileInputStream(words[2])) {
            filter = BloomFilter.readFrom(in);
        }
        StringBuilder answers = new StringBuilder();
        for (String key : Files.readAllLines(Paths.get(words[3]))) {
            boolean found = words[1].equals("long") ? filter.mightContainLong(Long.parseLong(key)) : filter.mightContainString(key);
            answers.append(found ? '1' : '0');
        }
        try (OutputStream out = new FileOutputStream(words[4])) {
            filter.writeTo(out);
        }
        return answers.toString();
    }
}
