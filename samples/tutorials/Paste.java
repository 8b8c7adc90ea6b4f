import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.Stream;

/**
 * The positions of the class that many tutorials copy, as they are, and where two of its versions keep them.
 *
 * <p>java Paste.java bitset FILE KEY...: in a BitSet, written to a file. java Paste.java setbit NAME KEY...: in a string of Redis; prints the
 * commands. A key of digits alone is an Integer.
 */
public class Paste {
    static final int SIZE = 2 << 28;
    static final int[] FACTORS = {1, 6, 16, 38, 58, 68};

    static int position(Object key, int factor) {
        int h = key.hashCode();
        return factor * (SIZE - 1) & (h ^ (h >>> 16));
    }

    public static void main(String[] args) throws IOException {
        Stream<Object> keys = Arrays.stream(args, 2, args.length)
            .map(key -> key.matches("[0-9]+") ? (Object) Integer.valueOf(key) : key);
        var positions = keys.flatMap(key -> Arrays.stream(FACTORS).mapToObj(factor -> position(key, factor)));
        if (args[0].equals("bitset")) {
            BitSet bits = new BitSet();
            positions.forEach(bits::set);
            Files.write(Path.of(args[1]), bits.toByteArray());
        } else {
            positions.forEach(position -> System.out.println("SETBIT " + args[1] + " " + position + " 1"));
        }
    }
}
