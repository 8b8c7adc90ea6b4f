// The guide's classes, driven by the tests: a command comes as a line of words between tabs, its answer goes as a line.
// Keys are the hex of their UTF-16: a key may be half a pair, or have line feeds.
package shop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Optional;

public final class Driver {
    private static SeenFilter filter;
    private static ProductTable table;
    private static Products products;
    private static int patience;

    public static void main(String[] arguments) throws IOException {
        var commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            System.out.println(run(line.split("\t", -1)).replaceAll("\\s+", " "));
        }
    }

    private static String run(String[] words) {
        try {
            switch (words[0]) {
                case "local":
                    return use(new LocalFilter(1000, 0.001));
                case "guava":
                    return use(new GuavaFilter(1000, 0.001));
                case "moving":
                    return use(new MovingFilter(filter, new LocalFilter(1000, 0.001)));
                case "http":
                    return use(new HttpFilter(words[1], words[2], patience));
                case "redis":
                    return use(new RedisFilter("127.0.0.1", Integer.parseInt(words[1]), words[2], patience));
                case "patience": // of the filters from here on, in milliseconds
                    patience = Integer.parseInt(words[1]);
                    return "done";
                case "row": // one that is in the table, whatever the filter thinks
                    table.save(key(words[1]), "product");
                    return "done";
                case "fill":
                    ((RedisFilter) filter).fill(1000, 0.001, table.ids());
                    return "done";
                case "check":
                    return filter.mightContain(key(words[1])) ? "yes" : "no";
                case "save":
                    products.save(key(words[1]), "product");
                    return "done";
                default: // find
                    long asked = table.asked.sum();
                    Optional<String> found = products.find(key(words[1]));
                    return (found.isPresent() ? "found" : "none") + (table.asked.sum() > asked ? ", table asked" : "");
            }
        } catch (IOException | IllegalArgumentException e) {
            return "failed: " + e;
        }
    }

    private static String use(SeenFilter used) {
        filter = used;
        table = new ProductTable();
        products = new Products(filter, table);
        return "done";
    }

    private static String key(String hex) {
        var key = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) {
            key.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        }
        return key.toString();
    }
}
