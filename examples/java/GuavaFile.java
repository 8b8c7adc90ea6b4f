package shop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** {@code write FILE KEYS}: a filter of the lines of KEYS. {@code ask FILE KEY}: whether the key may be in it. */
public final class GuavaFile {
    public static void main(String[] arguments) throws IOException {
        Path file = Path.of(arguments[1]);
        if (arguments[0].equals("write")) {
            List<String> keys = Files.readAllLines(Path.of(arguments[2]));
            var filter = new GuavaFilter(keys.size(), 0.01);
            keys.forEach(filter::add);
            filter.write(file);
        } else {
            System.out.println(GuavaFilter.read(file).mightContain(arguments[2]));
        }
    }
}
