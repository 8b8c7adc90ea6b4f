// The library, driven by the tests: a command comes as a line of words between tabs, its answer goes as a line. Keys
// and secrets are hex.
package io.tamis;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;

public final class Driver {
    public static void main(String[] arguments) throws IOException {
        var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null; ) {
            System.out.println(run(line.split("\t", -1)).replaceAll("\\s*\n\\s*", " | "));
        }
    }

    /** Whatever is not an error that users are told about is a crash. */
    private static String run(String[] words) {
        try {
            return answer(words);
        } catch (TamisException e) {
            return "refused: " + e.reason() + ": " + e.getMessage();
        } catch (IOException | IllegalArgumentException | UnsupportedOperationException e) {
            return "failed: " + e.getMessage();
        } catch (Throwable e) {
            return "CRASH: " + e + " at " + Arrays.toString(e.getStackTrace());
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "alike": { // HOW FILE
                TamisFilter filter = opened(words[1], words[2]);
                return digest(10_000, i -> filter.mightContain(text(i))) + " "
                        + digest(10_000, i -> filter.mightContain(bytes(i))) + " "
                        + digest(10_000, i -> filter.mightContain(i * 0x9E3779B97F4A7C15L));
            }
            case "alikeAt": { // HOW FILE MICROSECONDS: the same of a window at a moment
                TamisFilter filter = opened(words[1], words[2]);
                Instant at = Instant.EPOCH.plus(Long.parseLong(words[3]), ChronoUnit.MICROS);
                return digest(10_000, i -> filter.mightContain(text(i), at)) + " "
                        + digest(10_000, i -> filter.mightContain(bytes(i), at)) + " "
                        + digest(10_000, i -> filter.mightContain(integer(i), at));
            }
            case "text": { // UTF-16: asked, added, removed and joined as text
                TamisFilter filter = TamisFilter.builder(100, 1e-6).kind(Kind.COUNTING).make();
                TamisFilter two = TamisFilter.builder(100, 1e-6).values(2).make();
                var units = new char[words[1].length() / 4];
                ByteBuffer.wrap(hex(words[1])).asCharBuffer().get(units);
                var key = new String(units);
                return String.join(
                        " | ",
                        caught(() -> filter.mightContain(key)),
                        caught(() -> filter.mightContain(key, Instant.EPOCH)),
                        caught(() -> filter.put(key)),
                        caught(() -> filter.mightContain(key)),
                        caught(() -> filter.remove(key)),
                        caught(() -> two.put(two.join("a", key))));
            }
            case "all": { // HOW FILE: the same through mightContainAll
                TamisFilter filter = opened(words[1], words[2]);
                List<byte[]> keys = new ArrayList<>();
                for (int i = 0; i < 10_000; i++) {
                    keys.add(bytes(i));
                }
                boolean[] answers = filter.mightContainAll(keys);
                return digest(10_000, i -> answers[i]);
            }
            case "has": { // HOW FILE KEY...
                TamisFilter filter = opened(words[1], words[2]);
                return Arrays.stream(words).skip(3).map(key -> filter.test(hex(key)) ? "1" : "0").collect(Collectors.joining());
            }
            case "hasExact": {
                TamisFilter filter = opened(words[1], words[2]);
                return Arrays.stream(words).skip(3).map(key -> filter.mightContainExact(hex(key)) ? "1" : "0").collect(Collectors.joining());
            }
            case "hasJoined": { // HOW FILE VALUE...
                TamisFilter filter = opened(words[1], words[2]);
                byte[][] values = Arrays.stream(words).skip(3).map(Driver::hex).toArray(byte[][]::new);
                return filter.mightContain(filter.join(values)) ? "1" : "0";
            }
            case "at": { // HOW FILE MICROSECONDS KEY...
                TamisFilter filter = opened(words[1], words[2]);
                Instant at = Instant.EPOCH.plus(Long.parseLong(words[3]), ChronoUnit.MICROS);
                return Arrays.stream(words).skip(4).map(key -> filter.mightContain(hex(key), at) ? "1" : "0").collect(Collectors.joining());
            }
            case "count": { // HOW FILE KEYS: how many of a file of lines of hex are found
                TamisFilter filter = opened(words[1], words[2]);
                return String.valueOf(lines(words[3]).stream().filter(filter).count());
            }
            case "info": {
                TamisFilter filter = opened(words[1], words[2]);
                return String.join(
                        " ",
                        filter.kind().toString(),
                        String.valueOf(filter.approximateElementCount()),
                        String.valueOf(filter.expectedFpp()),
                        String.valueOf(filter.capacity()),
                        String.valueOf(filter.rate()),
                        String.valueOf(filter.bytes()));
            }
            case "plan": { // KIND KEYS RATE
                BitLayout layout = Plan.of(Kind.valueOf(words[1]), Long.parseLong(words[2]), Double.parseDouble(words[3]));
                return layout.shape1() + " " + layout.shape2a() + " " + layout.shape2b() + " " + layout.bytes();
            }
            case "math": { // FUNCTION: the digest of a million of its values
                SplittableRandom chance = new SplittableRandom(1);
                long digest = 0;
                for (int i = 0; i < 1_000_000; i++) {
                    double fraction = (chance.nextLong() >>> 11) * 0x1p-53;
                    int exponent = (int) Long.remainderUnsigned(chance.nextLong(), 60);
                    double large = fraction * Math.scalb(1.0, 10 - exponent);
                    double small = fraction * Math.scalb(1.0, -exponent);
                    double value = words[1].equals("exp") ? StrictMath.exp(-large)
                            : words[1].equals("expm1") ? StrictMath.expm1(-large)
                            : words[1].equals("log") ? Floats.log(small) : Floats.log1p(-small);
                    digest = digest * 31 + Double.doubleToRawLongBits(value);
                }
                return String.format("%016x", digest);
            }
            case "make": { // OPTIONS KIND KEYS RATE FILE [LINES]
                TamisFilter filter = made(words);
                int added = 0;
                for (byte[] key : words.length > 6 ? lines(words[6]) : List.<byte[]>of()) {
                    added += filter.put(key) ? 1 : 0;
                }
                filter.save(Path.of(words[5]));
                boolean same = Arrays.equals(filter.toBytes(), Files.readAllBytes(Path.of(words[5])));
                return added + (same ? " new" : " new, and bytes differ from the file");
            }
            case "written": { // FILE: who may read it before it is complete
                var modes = new StringBuilder();
                Path file = Path.of(words[1]);
                Replacement.write(file, false, out -> {
                    try (var near = Files.newDirectoryStream(file.getParent(), ".java-tamis-*")) {
                        for (Path half : near) {
                            modes.append(PosixFilePermissions.toString(Files.getPosixFilePermissions(half)));
                        }
                    }
                });
                return modes.toString();
            }
            case "makeJoined": { // OPTIONS KIND KEYS RATE FILE VALUE...
                TamisFilter filter = made(words);
                filter.put(filter.join(Arrays.stream(words).skip(6).map(Driver::hex).toArray(byte[][]::new)));
                filter.save(Path.of(words[5]));
                return "done";
            }
            case "add": { // HOW FILE LINES TO
                TamisFilter filter = opened(words[1], words[2]);
                lines(words[3]).forEach(filter::put);
                filter.save(Path.of(words[4]));
                return "done";
            }
            case "remove": {
                TamisFilter filter = opened(words[1], words[2]);
                long removed = lines(words[3]).stream().filter(filter::remove).count();
                filter.save(Path.of(words[4]));
                return String.valueOf(removed);
            }
            case "merge": { // HOW FILE OTHER TO
                TamisFilter filter = opened(words[1], words[2]);
                filter.merge(opened("map", words[3]));
                filter.save(Path.of(words[4]));
                return "done";
            }
            case "sparse": { // FILE LINES: an empty blocked filter whose body takes no room on disk
                var layout = new BlockedLayout(Long.parseLong(words[2]), 6, 1);
                try (var file = new RandomAccessFile(words[1], "rw")) {
                    file.write(Header.of(layout, new Hasher(0, null, false, KeyRule.EXACT), 1000, 0.01).sealed(0, 0));
                    file.setLength(Header.LENGTH + layout.bytes());
                }
                return "done";
            }
            case "threads":
                return Threads.check(Kind.valueOf(words[1]));
            case "fuzz": // SEED RUNS FILE...
                return Fuzz.run(Long.parseLong(words[1]), Integer.parseInt(words[2]), Arrays.copyOfRange(words, 3, words.length));
            default:
                throw new AssertionError(words[0]);
        }
    }

    /** HOW is a way, and behind commas a secret and whether to accept the loss. */
    static TamisFilter opened(String how, String name) throws IOException {
        var open = new Open();
        String[] words = how.split(",");
        for (String word : words) {
            if (word.equals("loss")) {
                open.acceptLoss();
            } else if (word.startsWith("secret=")) {
                open.secret(SecretKey.of(hex(word.substring(7))));
            } else if (word.equals("verify")) {
                open.verify();
            }
        }
        Path file = Path.of(name);
        switch (words[0]) {
            case "load":
                return open.load(file);
            case "map":
                return open.map(file);
            case "bytes":
                return open.decode(Files.readAllBytes(file));
            case "view": { // in the middle of a buffer, of the other order
                byte[] bytes = Files.readAllBytes(file);
                ByteBuffer buffer = ByteBuffer.allocate(bytes.length + 13).order(ByteOrder.BIG_ENDIAN);
                buffer.position(5);
                buffer.put(bytes).position(5).limit(5 + bytes.length);
                TamisFilter filter = open.view(buffer);
                if (buffer.position() != 5 || buffer.order() != ByteOrder.BIG_ENDIAN) {
                    throw new AssertionError("the buffer was changed");
                }
                return filter;
            }
            case "direct":
                try (FileChannel channel = FileChannel.open(file)) {
                    return open.view(channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()).asReadOnlyBuffer());
                }
            default: // the bytes of a segment
                return open.map(file, Integer.parseInt(words[0]));
        }
    }

    private static TamisFilter made(String[] words) {
        TamisFilter.Builder builder =
                TamisFilter.builder(Long.parseLong(words[3]), Double.parseDouble(words[4])).kind(Kind.valueOf(words[2]));
        for (String option : words[1].split(",")) {
            String[] pair = option.split("=");
            switch (pair[0]) {
                case "seed":
                    builder.seed(Long.parseUnsignedLong(pair[1]));
                    break;
                case "secret":
                    builder.secret(SecretKey.of(hex(pair[1])));
                    break;
                case "apart":
                    builder.secretApart(SecretKey.of(hex(pair[1])));
                    break;
                case "case":
                    builder.ignoreCase();
                    break;
                case "values":
                    builder.values(Integer.parseInt(pair[1]));
                    break;
                default:
                    break;
            }
        }
        return builder.make();
    }

    static byte[] hex(String text) {
        var bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static List<byte[]> lines(String file) throws IOException {
        return Files.readAllLines(Path.of(file)).stream().map(Driver::hex).collect(Collectors.toList());
    }

    private static String caught(BooleanSupplier call) {
        try {
            return String.valueOf(call.getAsBoolean());
        } catch (IllegalArgumentException e) {
            return e.getMessage();
        }
    }

    private static byte[] integer(int i) {
        return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(i * 0x9E3779B97F4A7C15L).array();
    }

    private static String text(int i) {
        return i < 5_000 ? "probe-" + i : "added-" + (i - 5_000);
    }

    static byte[] bytes(int i) {
        var key = new byte[i % 300];
        for (int j = 0; j < key.length; j++) {
            key[j] = (byte) (31 * i + 7 * j);
        }
        return key;
    }

    private static String digest(int keys, IntPredicate answer) {
        long digest = 0xCBF29CE484222325L;
        int yes = 0;
        for (int i = 0; i < keys; i++) {
            boolean found = answer.test(i);
            yes += found ? 1 : 0;
            digest = (digest ^ (found ? '1' : '0')) * 0x100000001B3L;
        }
        return yes + ":" + String.format("%016x", digest);
    }
}
