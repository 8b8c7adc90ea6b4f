package shop;

import io.tamis.TamisFilter;
import java.io.IOException;
import java.nio.file.Path;
import org.apache.spark.sql.api.java.UDF1;

/**
 * {@code seen(key)} in a query: whether a key may be in a filter file, which every executor finds under the same name.
 */
public final class SeenUdf implements UDF1<String, Boolean> {
    private static final long serialVersionUID = 1;

    private final String file;
    /** Not sent to the executors: each maps the file, which costs the same for any size. */
    private transient TamisFilter filter;

    public SeenUdf(String file) {
        this.file = file;
    }

    @Override
    public Boolean call(String key) throws IOException {
        if (filter == null) {
            filter = TamisFilter.open(Path.of(file));
        }
        return key == null ? null : filter.mightContain(key);
    }
}
