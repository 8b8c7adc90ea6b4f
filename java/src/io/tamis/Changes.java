package io.tamis;

import java.util.concurrent.atomic.LongAdder;

/**
 * Adds keys to a filter and removes them, and knows how many it has. Refuses changes unless the filter is on the heap
 * and of a kind that Java changes.
 */
final class Changes {
    private final Header header;
    private final Layout layout;
    private final Words words;
    /** Null if no keys can be added. */
    private final Probe adding;

    /** What the number of keys in the header has to be changed by. */
    private final LongAdder newKeys = new LongAdder();

    private volatile boolean keysUnknown;

    Changes(Header header, Layout layout, Words words) {
        this.header = header;
        this.layout = layout;
        this.words = words;
        boolean isWritable = layout instanceof BitLayout && words instanceof Words.OnHeap;
        adding = isWritable ? new Adding((BitLayout) layout, ((Words.OnHeap) words).words, newKeys) : null;
        keysUnknown = header.keys() == Header.KEYS_UNKNOWN;
    }

    /** What adds a key; it answers whether the key was new. Throws if no keys can be added. */
    Probe adding() {
        if (adding != null) {
            return adding;
        }
        throw new UnsupportedOperationException(cannot("added to"));
    }

    /** Adds and counts. */
    private static final class Adding extends Probe {
        private final BitLayout layout;
        private final long[] words;
        private final LongAdder newKeys;

        Adding(BitLayout layout, long[] words, LongAdder newKeys) {
            this.layout = layout;
            this.words = words;
            this.newKeys = newKeys;
        }

        @Override
        boolean of(byte[] key, long seed) {
            return Xxh3.hash(key, seed, this);
        }

        @Override
        boolean at(long hi, long lo) {
            boolean isNew = layout.put(words, hi, lo);
            if (isNew) {
                newKeys.increment();
            }
            return isNew;
        }
    }

    /** What removes a key; it answers whether the key seemed to be there. Throws if no keys can be removed. */
    Probe removing() {
        if (layout.kind == Kind.BLOOM || layout.kind == Kind.BLOCKED) {
            throw new UnsupportedOperationException(
                    layout.kind + " filters can't be removed from: their bits are shared by many keys; use a cuckoo or a counting filter");
        }
        if (adding == null) {
            throw new UnsupportedOperationException(cannot("removed from"));
        }
        var counting = (CountingLayout) layout;
        return new Probe() {
            @Override
            boolean at(long hi, long lo) {
                if (!counting.contains(words, hi, lo)) {
                    return false;
                }
                counting.remove(((Words.OnHeap) words).words, hi, lo);
                if (!counting.contains(words, hi, lo)) {
                    newKeys.decrement();
                }
                return true;
            }
        };
    }

    private String cannot(String what) {
        switch (layout.kind) {
            case BLOOM:
            case BLOCKED:
            case COUNTING:
                return "the filter is open for asking only, and can't be " + what + ": load it (TamisFilter.load), change it and save it";
            case FUSE:
            case RIBBON:
            case CASCADE:
                return layout.kind + " filters can't be " + what + ": build it again from all keys, or create a blocked filter";
            default:
                return layout.kind + " filters can't be " + what + " in Java: use the command, Rust or Python, or create a blocked filter";
        }
    }

    /** Adds the keys of another body, whose layout and hash are like ours. */
    void unite(Words others) {
        keysUnknown = true; // a key may be in both
        var ours = (BitLayout) layout;
        long[] changed = ((Words.OnHeap) words).words;
        for (int i = 0; i < changed.length; i++) {
            ours.unite(changed, i, others.get(i));
        }
    }

    /** As a header has it, without a sign: neither below 0 nor above what it can say. */
    long countedKeys() {
        long counted = layout.counted(words);
        if (counted >= 0) {
            return counted;
        }
        if (keysUnknown) {
            return Header.KEYS_UNKNOWN;
        }
        long change = newKeys.sum();
        counted = header.keys() + change;
        if (change < 0 && Long.compareUnsigned(counted, header.keys()) > 0) {
            return 0;
        }
        return change > 0 && Long.compareUnsigned(counted, header.keys()) < 0 ? Header.KEYS_UNKNOWN : counted;
    }
}
