// Guava, asked by the tests: commands come as lines, answers go as lines. Keys are in files, one a line, in hex.
//
//   make FUNNEL STRATEGY KEYS RATE FILE KEY-FILE    a filter with these keys
//   ask FUNNEL FILE KEY-FILE REWRITTEN              "1" or "0" for each key; writes the filter again
//
// In Guava's own package, because strategies are not public.
package com.google.common.hash;

import com.google.common.io.BaseEncoding;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.function.Function;

public final class GuavaPeer {
    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split("\t");
            System.out.println(run(words));
            System.out.flush();
        }
    }

    private static String run(String[] words) throws Exception {
        switch (words[1]) {
            case "bytes":
                return run(words, Funnels.byteArrayFunnel(), key -> key);
            case "utf8":
                return run(words, Funnels.stringFunnel(StandardCharsets.UTF_8), key -> new String(key, StandardCharsets.UTF_8));
            case "utf16":
                return run(words, Funnels.unencodedCharsFunnel(), key -> {
                    // Not through a charset: it would replace half a pair.
                    char[] chars = new char[key.length / 2];
                    ByteBuffer.wrap(key).order(ByteOrder.LITTLE_ENDIAN).asCharBuffer().get(chars);
                    return new String(chars);
                });
            case "int32":
                return run(words, Funnels.integerFunnel(), key -> ByteBuffer.wrap(key).order(ByteOrder.LITTLE_ENDIAN).getInt());
            default:
                return run(words, Funnels.longFunnel(), key -> ByteBuffer.wrap(key).order(ByteOrder.LITTLE_ENDIAN).getLong());
        }
    }

    private static <T> String run(String[] words, Funnel<? super T> funnel, Function<byte[], T> key) throws Exception {
        if (words[0].equals("make")) {
            BloomFilterStrategies strategy = words[2].equals("mitz32")
                    ? BloomFilterStrategies.MURMUR128_MITZ_32
                    : BloomFilterStrategies.MURMUR128_MITZ_64;
            BloomFilter<T> filter =
                    BloomFilter.<T>create(funnel, Long.parseLong(words[3]), Double.parseDouble(words[4]), strategy);
            for (String hex : Files.readAllLines(Paths.get(words[6]))) {
                filter.put(key.apply(BaseEncoding.base16().lowerCase().decode(hex)));
            }
            try (OutputStream out = new FileOutputStream(words[5])) {
                filter.writeTo(out);
            }
            return "made";
        }
        BloomFilter<T> filter;
        try (InputStream in = new FileInputStream(words[2])) {
            filter = BloomFilter.<T>readFrom(in, funnel);
        }
        StringBuilder answers = new StringBuilder();
        for (String hex : Files.readAllLines(Paths.get(words[3]))) {
            answers.append(filter.mightContain(key.apply(BaseEncoding.base16().lowerCase().decode(hex))) ? '1' : '0');
        }
        try (OutputStream out = new FileOutputStream(words[4])) {
            filter.writeTo(out);
        }
        return answers.toString();
    }
}
