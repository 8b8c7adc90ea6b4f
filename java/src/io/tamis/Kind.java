package io.tamis;

import java.util.Locale;

/** The kinds of filter that a file can hold. */
public enum Kind {
    /** The textbook Bloom filter. */
    BLOOM,
    /** Bloom bits of a key within one to four cache lines: the default. */
    BLOCKED,
    /** Blocked with 4-bit counters instead of bits: keys can be removed. */
    COUNTING,
    /** Fingerprints in two places. Java reads it. */
    CUCKOO,
    /** Layers of blocked filters, for an unknown number of keys. Java reads it. */
    GROWING,
    /** A finished list, fast to ask and smaller than Bloom. Java reads it. */
    FUSE,
    /** A finished list, the smallest. Java reads it. */
    RIBBON,
    /** A finished block list with an allow list. Java reads it. */
    CASCADE,
    /** Generations of blocked filters, of which the oldest is forgotten. Java reads it. */
    WINDOW;

    /** As in a header. */
    int number() {
        return ordinal() + 1;
    }

    /** The name used on the command line. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
