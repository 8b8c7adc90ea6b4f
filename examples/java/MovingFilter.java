package shop;

import java.io.IOException;

/** Two filters while you move from one to the other: new keys go to the new one, and both are asked. */
public final class MovingFilter implements SeenFilter {
    private final SeenFilter old;
    private final SeenFilter now;

    public MovingFilter(SeenFilter old, SeenFilter now) {
        this.old = old;
        this.now = now;
    }

    @Override
    public boolean mightContain(String key) throws IOException {
        return now.mightContain(key) || old.mightContain(key);
    }

    @Override
    public void add(String key) throws IOException {
        now.add(key);
    }
}
