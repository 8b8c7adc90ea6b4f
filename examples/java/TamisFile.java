package shop;

import io.tamis.TamisFilter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** {@code write FILE KEYS}: a filter of the lines of KEYS. {@code ask FILE KEY}: whether the key may be in it. */
public final class TamisFile {
    public static void main(String[] arguments) throws IOException {
        Path file = Path.of(arguments[1]);
        if (arguments[0].equals("write")) {
            List<String> keys = Files.readAllLines(Path.of(arguments[2]));
            TamisFilter filter = TamisFilter.of(2 * keys.size(), 0.01); // with room for as many again
            keys.forEach(filter::put);
            filter.save(file);
        } else {
            System.out.println(TamisFilter.open(file).mightContain(arguments[2]));
        }
    }
}
