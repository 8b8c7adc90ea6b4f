package io.tamis;

/** A kind whose keys are bits or counters, which are changed by atomic instructions. */
abstract class BitLayout extends Layout {
    BitLayout(Kind kind) {
        super(kind);
    }

    /** The three words of the shape in a header; the last is 0. */
    abstract long shape1();

    abstract int shape2a();

    abstract int shape2b();

    /** Adds the key of this hash; whether it was new. */
    abstract boolean put(long[] words, long hi, long lo);

    /** Combines one of our words with the same one of another filter. */
    abstract void unite(long[] words, int index, long theirs);

    /** Throws unless both have the same geometry. */
    abstract void checkLike(Layout other);

    static void checkSame(String what, long ours, long theirs) {
        if (ours != theirs) {
            throw Hasher.unlike(what, ours, theirs);
        }
    }
}
