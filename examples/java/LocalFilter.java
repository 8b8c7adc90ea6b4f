package shop;

import io.tamis.TamisFilter;

/** A filter of tamis-java in this process, for one process. */
public final class LocalFilter implements SeenFilter {
    private final TamisFilter keys;

    public LocalFilter(long capacity, double rate) {
        keys = TamisFilter.of(capacity, rate);
    }

    @Override
    public boolean mightContain(String key) {
        return keys.mightContain(key);
    }

    @Override
    public void add(String key) {
        keys.put(key);
    }
}
