import com.google.common.hash.Funnels;
import com.google.common.hash.Hashing;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * Writes bitmap.tsv: which bits Java sets for a key, by the ways that classes around SETBIT hash. A line is hash, hashes,
 * bits, the key in hex of UTF-8, and the numbers of its bits, which may be negative.
 *
 * <pre>
 * javac -cp /usr/share/java/guava.jar Bitmap.java && java -cp /usr/share/java/guava.jar:. Bitmap >bitmap.tsv
 * </pre>
 */
public class Bitmap {
    static final String[] KEYS = {
        "", "a", "key0", "https://example.org/page?id=123456", "polygenelubricants", "x".repeat(300), "é", "日本", "🌾",
        "a🌾b", "张学友", "\u0000", "\uffff",
    };

    static long[] mitz64(byte[] key, int hashes, long bits) {
        byte[] digest = Hashing.murmur3_128().hashBytes(key).asBytes();
        var buffer = java.nio.ByteBuffer.wrap(digest).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        long first = buffer.getLong(), step = buffer.getLong(), sum = first;
        long[] out = new long[hashes];
        for (int i = 0; i < hashes; i++, sum += step) out[i] = (sum & Long.MAX_VALUE) % bits;
        return out;
    }

    static long[] mitz32(byte[] key, int hashes, int bits) {
        long hash = Hashing.murmur3_128().hashObject(key, Funnels.byteArrayFunnel()).asLong();
        int low = (int) hash, high = (int) (hash >>> 32);
        long[] out = new long[hashes];
        for (int i = 1; i <= hashes; i++) {
            int next = low + i * high;
            out[i - 1] = (next < 0 ? ~next : next) % bits;
        }
        return out;
    }

    static long[] seeds(String key, int[] seeds, int size) {
        long[] out = new long[seeds.length];
        for (int s = 0; s < seeds.length; s++) {
            int hash = 0;
            for (int i = 0; i < key.length(); i++) hash = seeds[s] * hash + key.charAt(i);
            out[s] = (size - 1) & hash;
        }
        return out;
    }

    static long[] spread(String key, int[] factors, int size) {
        int h = key.hashCode();
        long[] out = new long[factors.length];
        for (int i = 0; i < factors.length; i++) out[i] = factors[i] * (size - 1) & (h ^ (h >>> 16));
        return out;
    }

    static void print(String hash, String hashes, long bits, Function<String, long[]> of) {
        for (String key : KEYS) {
            StringBuilder hex = new StringBuilder();
            for (byte b : key.getBytes(StandardCharsets.UTF_8)) hex.append(String.format("%02x", b));
            List<String> numbers = new ArrayList<>();
            for (long bit : of.apply(key)) numbers.add(Long.toString(bit));
            System.out.println(String.join("\t", hash, hashes, Long.toString(bits), hex, String.join(",", numbers)));
        }
    }

    static byte[] utf8(String key) {
        return key.getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] args) {
        for (int bits : new int[] {9585, 1 << 25, Integer.MAX_VALUE}) {
            print("guava", "7", bits, key -> mitz64(utf8(key), 7, bits));
            print("guava32", "17", bits, key -> mitz32(utf8(key), 17, bits));
        }
        print("guava", "3", 1L << 32, key -> mitz64(utf8(key), 3, 1L << 32));
        for (int size : new int[] {1 << 24, 2 << 28, 1_000_000})
            print("java-seeds:5,7,11,13,31,37,61", "", size, key -> seeds(key, new int[] {5, 7, 11, 13, 31, 37, 61}, size));
        for (int size : new int[] {2 << 28, 1 << 16, 1_000_000})
            print("java-spread:1,6,16,38,58,68", "", size, key -> spread(key, new int[] {1, 6, 16, 38, 58, 68}, size));
    }
}
