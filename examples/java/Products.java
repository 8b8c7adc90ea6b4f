package shop;

import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.springframework.stereotype.Service;

/** Products by id. Ids that don't exist are turned away before they reach the table. */
@Service
public class Products {
    private final Map<String, String> cache = new ConcurrentHashMap<>(); // yours has a limit
    private final SeenFilter filter;
    private final ProductTable table;
    public final LongAdder turnedAway = new LongAdder();
    public final LongAdder undecided = new LongAdder();

    public Products(SeenFilter filter, ProductTable table) {
        this.filter = filter;
        this.table = table;
    }

    public Optional<String> find(String id) {
        String cached = cache.get(id);
        if (cached != null) {
            return Optional.of(cached);
        }
        if (!mayExist(id)) {
            turnedAway.increment();
            return Optional.empty();
        }
        Optional<String> found = table.find(id);
        found.ifPresent(name -> cache.put(id, name));
        return found;
    }

    /** The filter comes first: a row that it doesn't know would be turned away. */
    public void save(String id, String name) throws IOException {
        filter.add(id);
        table.save(id, name);
        cache.remove(id);
    }

    /** A filter that can't answer turns nobody away: the table is asked instead. */
    private boolean mayExist(String id) {
        try {
            return filter.mightContain(id);
        } catch (IOException | RuntimeException e) {
            undecided.increment();
            return true;
        }
    }
}
