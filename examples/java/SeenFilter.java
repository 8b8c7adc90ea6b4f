package shop;

import java.io.IOException;

/** Remembers keys. Its "yes" is sometimes wrong, its "no" never. */
public interface SeenFilter {
    /** Whether the key may be there. Throws if it can't tell; it never guesses "no". */
    boolean mightContain(String key) throws IOException;

    /** Returns once the key is there for everyone who asks; throws if that isn't certain. */
    void add(String key) throws IOException;
}
