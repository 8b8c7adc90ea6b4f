package io.tamis;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Files with changed bytes, of which many have right checksums again: each is asked, or refused by a {@link
 * TamisException}, and nothing else happens.
 */
final class Fuzz {
    private Fuzz() {}

    private static final SecretKey SECRET = SecretKey.of(new byte[16]);

    static String run(long seed, int runs, String[] names) throws Exception {
        var files = new byte[names.length][];
        for (int i = 0; i < names.length; i++) {
            files[i] = Files.readAllBytes(Path.of(names[i]));
        }
        var random = new SplittableRandom(seed);
        int opened = 0;
        for (int run = 0; run < runs; run++) {
            byte[] bytes = changed(files[random.nextInt(files.length)].clone(), random);
            try {
                var open = new Open().secret(SECRET);
                if (random.nextBoolean()) {
                    open.acceptLoss();
                }
                TamisFilter filter = random.nextBoolean() ? open.decode(bytes) : open.view(ByteBuffer.wrap(bytes));
                opened++;
                for (int i = 0; i < 8; i++) {
                    filter.mightContainExact(Driver.bytes(random.nextInt(10_000)));
                    filter.mightContain(random.nextLong());
                }
                byte[] key = Driver.bytes(random.nextInt(10_000));
                filter.mightContain(key, Instant.ofEpochSecond(random.nextLong(-1L << 40, 1L << 40)));
                filter.mightContain(key, random.nextBoolean() ? Instant.MAX : Instant.MIN);
                if (random.nextInt(8) == 0) {
                    filter.approximateElementCount();
                    filter.expectedFpp();
                    Open again = new Open().secret(SECRET);
                    again.decode(filter.toBytes());
                }
            } catch (TamisException refused) {
                // as it should be
            } catch (UnsupportedOperationException url) {
                if (!url.getMessage().contains("URLs")) {
                    throw url;
                }
            } catch (Throwable e) {
                Files.write(Path.of("crash.tamis"), bytes);
                throw new AssertionError("run " + run + ", kept in crash.tamis", e);
            }
        }
        return runs + " runs, " + opened + " opened";
    }

    private static byte[] changed(byte[] bytes, SplittableRandom random) {
        ByteBuffer file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        boolean inHeader = random.nextBoolean();
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
            int from = inHeader ? 8 : random.nextInt(Math.max(1, bytes.length - 8));
            int to = inHeader ? 88 : Math.min(bytes.length, from + 8);
            int at = from + random.nextInt(to - from);
            switch (random.nextInt(5)) {
                case 0:
                    bytes[at] ^= (byte) (1 << random.nextInt(8));
                    break;
                case 1:
                    bytes[at] = (byte) random.nextInt();
                    break;
                case 2: // a number at the edge of something
                    file.putLong(Math.min(at & ~7, bytes.length - 8), (1L << random.nextInt(64)) - random.nextInt(3));
                    break;
                case 3:
                    file.putInt(Math.min(at & ~3, bytes.length - 4), random.nextInt(70));
                    break;
                default:
                    file.putLong(Math.min(at & ~7, bytes.length - 8), random.nextLong() >>> random.nextInt(64));
                    break;
            }
        }
        if (random.nextInt(16) == 0) {
            bytes = Arrays.copyOf(bytes, random.nextInt(2 * bytes.length));
        }
        file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.length >= Header.LENGTH && random.nextInt(8) != 0) {
            // So that what lies behind the checksums is reached.
            file.putLong(104, 0);
            if (random.nextBoolean()) {
                file.putLong(112, 0).putLong(120, 0);
            }
            fitBodyLength(file, random);
            file.putLong(88, Xxh3.hash64(bytes, 88, 0));
        }
        return bytes;
    }

    /** Often the length that the changed shape needs, if it is small: then the file's is cut or filled. */
    private static void fitBodyLength(ByteBuffer file, SplittableRandom random) {
        int kind = file.get(10);
        if (random.nextInt(4) == 0 || kind < 1 || kind > 9) {
            return;
        }
        try {
            Layout layout = Layout.decode(Kind.values()[kind - 1], file.getLong(56), file.getInt(64), file.getInt(68), file.getLong(72));
            file.putLong(80, layout.bytes());
        } catch (TamisException refused) {
            // a shape that no length fits
        }
    }
}
