package io.tamis;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Collection;
import java.util.function.Predicate;

/**
 * A filter: a set of keys that answers "may have been added" or "was not added". Its "no" is never wrong; its "yes" is
 * wrong at the rate it was made for.
 *
 * <pre>{@code
 * TamisFilter seen = TamisFilter.of(1_000_000, 0.01);
 * seen.put("ada@example.org");
 * seen.mightContain("ada@example.org"); // true
 * seen.save(Path.of("seen.tamis"));
 * }</pre>
 *
 * <p>Files are the same bytes for every Tamis program: what Java writes, the command, Rust and Python ask, and what
 * they write, Java asks, of every {@link Kind}. Java makes blocked, Bloom and counting filters, and adds to those that
 * are on the heap.
 *
 * <p>A key is bytes. Text is taken as UTF-8, a {@code long} as 8 bytes, little-endian, like everywhere in Tamis. If the
 * filter was made to ignore case, or of several values, keys are made accordingly.
 *
 * <p>Any number of threads may ask and add at once. A key is found by every thread that asks after {@link #put} has
 * returned.
 */
public final class TamisFilter implements Predicate<byte[]> {
    private final Header header;
    private final Hasher hasher;
    private final Layout layout;
    private final Words words;
    private final Probe asking;
    private final Changes changes;

    private TamisFilter(Header header, Layout layout, Words words) {
        this.header = header;
        hasher = header.hasher;
        this.layout = layout;
        this.words = words;
        asking = layout.asking(words);
        changes = new Changes(header, layout, words);
    }

    /** Reads what the body says about itself. */
    static TamisFilter of(Disk.Read read) throws TamisException {
        return new TamisFilter(read.header, read.header.layout.complete(read.words, read.header.rate()), read.words);
    }

    /**
     * An empty blocked filter: the kind to take where nothing speaks for another.
     *
     * @param keys how many keys it should hold
     * @param rate the rate of false "yes" up to that number, such as 0.01
     * @return the filter
     * @throws IllegalArgumentException if no filter can have these numbers, or there is no memory for it
     */
    public static TamisFilter of(long keys, double rate) {
        return new Builder(keys, rate).make();
    }

    /**
     * An empty filter with more options than {@link #of(long, double)}.
     *
     * @param keys how many keys it should hold
     * @param rate the rate of false "yes" up to that number
     * @return the options
     */
    public static Builder builder(long keys, double rate) {
        return new Builder(keys, rate);
    }

    /**
     * Copies a file to the heap, where keys can be added.
     *
     * @param file a file of any kind of filter
     * @return the filter
     * @throws TamisException if the bytes are not a filter that can be asked
     * @throws IOException if the file can't be read
     * @see Open#load
     */
    public static TamisFilter load(Path file) throws IOException {
        return new Open().load(file);
    }

    /**
     * Maps a file for asking, of any size.
     *
     * @param file a file of any kind of filter
     * @return the filter
     * @throws TamisException if the bytes are not a filter that can be asked
     * @throws IOException if the file can't be read
     * @see Open#map
     */
    public static TamisFilter open(Path file) throws IOException {
        return new Open().map(file);
    }

    /**
     * Copies a filter out of bytes.
     *
     * @param bytes all bytes of a file
     * @return the filter
     * @throws TamisException if the bytes are not a filter that can be asked
     * @see Open#decode
     */
    public static TamisFilter fromBytes(byte[] bytes) throws TamisException {
        return new Open().decode(bytes);
    }

    /**
     * A filter in a buffer, without a copy.
     *
     * @param bytes all bytes of a file
     * @return the filter, to which no keys can be added
     * @throws TamisException if the bytes are not a filter that can be asked
     * @see Open#view
     */
    public static TamisFilter view(ByteBuffer bytes) throws TamisException {
        return new Open().view(bytes);
    }

    /**
     * Whether a key may have been added. A window is asked as of now: what the system's clock says, but not before its
     * latest key. So one that nobody adds to forgets all the same.
     *
     * @param key the key's bytes
     * @return false if it was not added; true if it was, or at the filter's rate if it was not
     * @throws UnsupportedOperationException if the filter normalises URLs: see {@link #mightContainExact}
     */
    public boolean mightContain(byte[] key) {
        return hasher.hash(key, asking);
    }

    /**
     * Whether a text may have been added, as UTF-8.
     *
     * @param key the key
     * @return as of {@link #mightContain(byte[])}
     * @throws IllegalArgumentException if half of a surrogate pair is in it, which has no UTF-8; so with every text
     */
    public boolean mightContain(String key) {
        return mightContain(Utf8.of(key));
    }

    /**
     * Whether a number may have been added, as 8 bytes. No rule changes a number.
     *
     * @param key the key
     * @return as of {@link #mightContain(byte[])}
     */
    public boolean mightContain(long key) {
        return hasher.hashExact(bytesOf(key), asking);
    }

    /**
     * Whether a key may have been added to a window in the time that it spans before a moment. Of a window that counts
     * keys, and of every other kind, the moment makes no difference.
     *
     * @param key the key's bytes
     * @param at when
     * @return as of {@link #mightContain(byte[])}
     */
    public boolean mightContain(byte[] key, Instant at) {
        return hasher.hash(key, layout instanceof WindowLayout ? ((WindowLayout) layout).askingAt(words, at) : asking);
    }

    /**
     * Whether a text may have been added to a window in the time that it spans before a moment.
     *
     * @param key the key
     * @param at when
     * @return as of {@link #mightContain(byte[], Instant)}
     */
    public boolean mightContain(String key, Instant at) {
        return mightContain(Utf8.of(key), at);
    }

    /**
     * Whether a key may have been added that is already as the filter's rule makes it: a URL in its normal form, text
     * in lower case.
     *
     * @param key the key's bytes, hashed as they are
     * @return as of {@link #mightContain(byte[])}
     */
    public boolean mightContainExact(byte[] key) {
        return hasher.hashExact(key, asking);
    }

    /**
     * {@link #mightContain(byte[])} of many keys at once: a large filter's lines are fetched for many of them together.
     *
     * @param keys the keys' bytes
     * @return an answer for each key, in their order
     */
    public boolean[] mightContainAll(Collection<byte[]> keys) {
        var answers = new boolean[keys.size()];
        var block = new HashBlock();
        int answered = 0;
        for (byte[] key : keys) {
            hasher.hash(key, block);
            if (block.isFull()) {
                answered = block.answer(asking, answers, answered);
            }
        }
        block.answer(asking, answers, answered);
        return answers;
    }

    /**
     * {@link #mightContain(byte[])}, as a {@link Predicate}.
     *
     * @param key the key's bytes
     * @return whether it may have been added
     */
    @Override
    public boolean test(byte[] key) {
        return mightContain(key);
    }

    /**
     * Adds a key. It is found from now on, by every thread.
     *
     * @param key the key's bytes
     * @return whether it was new; a key that was not seen before is sometimes taken for one that was
     * @throws UnsupportedOperationException if no keys can be added to this filter, or it normalises URLs: see {@link
     *     #putExact}
     */
    public boolean put(byte[] key) {
        return hasher.hash(key, changes.adding());
    }

    /**
     * Adds a text, as UTF-8.
     *
     * @param key the key
     * @return as of {@link #put(byte[])}
     */
    public boolean put(String key) {
        return put(Utf8.of(key));
    }

    /**
     * Adds a number, as 8 bytes.
     *
     * @param key the key
     * @return as of {@link #put(byte[])}
     */
    public boolean put(long key) {
        return hasher.hashExact(bytesOf(key), changes.adding());
    }

    /**
     * Adds a key that is already as the filter's rule makes it.
     *
     * @param key the key's bytes, hashed as they are
     * @return as of {@link #put(byte[])}
     */
    public boolean putExact(byte[] key) {
        return hasher.hashExact(key, changes.adding());
    }

    /**
     * Takes a key from a counting filter, once. Remove only what was added: other keys could be lost otherwise.
     *
     * @param key the key's bytes
     * @return whether it seemed to be there; if not, nothing was changed
     * @throws UnsupportedOperationException if this is not a counting filter on the heap
     */
    public boolean remove(byte[] key) {
        return hasher.hash(key, changes.removing());
    }

    /**
     * Takes a text from a counting filter, once.
     *
     * @param key the key
     * @return as of {@link #remove(byte[])}
     */
    public boolean remove(String key) {
        return remove(Utf8.of(key));
    }

    /**
     * Takes a number from a counting filter, once.
     *
     * @param key the key
     * @return as of {@link #remove(byte[])}
     */
    public boolean remove(long key) {
        return hasher.hashExact(bytesOf(key), changes.removing());
    }

    /**
     * The key of several values, for a filter that was made of several: each value as the filter's rule makes it,
     * behind its length, so that {@code ab, c} and {@code a, bc} differ.
     *
     * @param values as many as a key of the filter has
     * @return the key, for {@link #mightContain(byte[])} and {@link #put(byte[])}
     * @throws IllegalArgumentException if there are more or fewer: such a key would never be found
     */
    public byte[] join(byte[]... values) {
        if (values.length != hasher.rule.values) {
            throw new IllegalArgumentException("values of a key: expected " + hasher.rule.values + ", got " + values.length);
        }
        return values.length == 1 ? values[0] : hasher.rule.join(values);
    }

    /**
     * The key of several texts.
     *
     * @param values as many as a key of the filter has
     * @return as of {@link #join(byte[][])}
     */
    public byte[] join(String... values) {
        var bytes = new byte[values.length][];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = Utf8.of(values[i]);
        }
        return join(bytes);
    }

    /**
     * Adds all keys of another filter to this one. Both must have been made with the same numbers and options.
     *
     * @param other a filter of the same kind, size and hash, wherever it is
     * @throws IllegalArgumentException if they differ; then nothing was changed
     * @throws UnsupportedOperationException if no keys can be added to this filter
     */
    public void merge(TamisFilter other) {
        changes.adding(); // throws unless keys can be added
        if (kind() != other.kind()) {
            throw Hasher.unlike("the kind", kind(), other.kind());
        }
        ((BitLayout) layout).checkLike(other.layout);
        hasher.checkLike(other.hasher);
        changes.unite(other.words);
    }

    /**
     * The number of keys: those that were counted as new when they were added; after {@link #merge}, an estimate from
     * how full the filter is, which reads all of it. Of a window, those of the time it spans.
     *
     * @return about how many different keys were added
     */
    public long approximateElementCount() {
        long counted = changes.countedKeys();
        if (counted == Header.KEYS_UNKNOWN) {
            return Math.round(layout.keysNow(words));
        }
        return counted < 0 ? Long.MAX_VALUE : counted;
    }

    /**
     * The rate of false "yes" to expect now, from how full the filter is. Reads all of it.
     *
     * @return the chance that a key that was not added seems to be there
     */
    public double expectedFpp() {
        return layout.rateNow(words);
    }

    /**
     * How many keys it was made for. More can be added, at a rising rate.
     *
     * @return the number
     */
    public long capacity() {
        return header.capacity();
    }

    /**
     * The rate of false "yes" that it promises up to {@link #capacity} keys.
     *
     * @return the rate
     */
    public double rate() {
        return header.rate();
    }

    /**
     * The kind of filter.
     *
     * @return the kind
     */
    public Kind kind() {
        return layout.kind;
    }

    /**
     * The size of the body; a file has 128 bytes more.
     *
     * @return bytes
     */
    public long bytes() {
        return layout.bytes();
    }

    /**
     * Writes a file as a whole or not at all: under another name in the same folder, synced, then renamed; a failure
     * leaves what was there. Replaces only a regular file, whose owner and mode it keeps; a symbolic link is followed.
     * A new file that holds a secret is readable by its owner only. Keys that other threads add meanwhile may or may
     * not be in it.
     *
     * <p>Java can't take the lock with which Tamis programs keep each other out, only see it on Linux: a file that one
     * of them is changing is refused. Whoever loads, changes and saves one file from several processes must agree on
     * who does.
     *
     * @param file where
     * @throws IOException if it can't be written
     */
    public void save(Path file) throws IOException {
        long counted = changes.countedKeys();
        Replacement.write(file, header.holdsSecret(), out -> {
            var sum = new BodySum(layout.bytes(), counted);
            var piece = new byte[BodySum.PIECE];
            for (long at = 0; at < layout.bytes(); at += BodySum.PIECE) {
                int bytes = (int) Math.min(BodySum.PIECE, layout.bytes() - at);
                words.copy(at / 8, bytes / 8, piece);
                sum.add(piece, bytes);
                Replacement.put(out, piece, bytes, Header.LENGTH + at);
            }
            Replacement.put(out, header.sealed(counted, sum.get()), Header.LENGTH, 0);
        });
    }

    /**
     * The bytes of a file of this filter.
     *
     * @return header and body
     * @throws IllegalStateException if it is larger than an array: then {@link #save} it
     */
    public byte[] toBytes() {
        long length = Header.LENGTH + layout.bytes();
        if (length > Integer.MAX_VALUE - 8) {
            throw new IllegalStateException("bytes: expected at most 2 GB, got " + length + " bytes; save it to a file");
        }
        long counted = changes.countedKeys();
        var out = new byte[(int) length];
        var sum = new BodySum(layout.bytes(), counted);
        var piece = new byte[BodySum.PIECE];
        for (int at = Header.LENGTH; at < out.length; at += BodySum.PIECE) {
            int bytes = Math.min(BodySum.PIECE, out.length - at);
            words.copy((at - Header.LENGTH) / 8, bytes / 8, piece);
            sum.add(piece, bytes);
            System.arraycopy(piece, 0, out, at, bytes);
        }
        System.arraycopy(header.sealed(counted, sum.get()), 0, out, 0, Header.LENGTH);
        return out;
    }

    private static byte[] bytesOf(long key) {
        var bytes = new byte[8];
        for (int i = 0; i < 8; i++) {
            bytes[i] = (byte) (key >>> 8 * i);
        }
        return bytes;
    }

    /** Kind, size and promise, for logs. */
    @Override
    public String toString() {
        return kind() + " filter for " + Long.toUnsignedString(capacity()) + " keys at a rate of " + Floats.shown(rate()) + ", " + bytes() + " bytes";
    }

    /** Options for an empty filter. */
    public static final class Builder {
        private final long keys;
        private final double rate;
        private Kind kind = Kind.BLOCKED;
        private long seed;
        private SecretKey secret;
        private boolean secretInFile;
        private boolean ignoreCase;
        private int values = 1;

        private Builder(long keys, double rate) {
            this.keys = keys;
            this.rate = rate;
        }

        /**
         * Which kind.
         *
         * @param kind {@link Kind#BLOCKED}, {@link Kind#BLOOM} or {@link Kind#COUNTING}
         * @return this
         */
        public Builder kind(Kind kind) {
            this.kind = kind;
            return this;
        }

        /**
         * The seed of the hash, which distinguishes filters and offers no protection. A filter with a secret has none.
         *
         * @param seed any number
         * @return this
         */
        public Builder seed(long seed) {
            this.seed = seed;
            return this;
        }

        /**
         * Hashes under a secret, for keys that an adversary may choose. It is stored in the file: who reads the file
         * knows it.
         *
         * @param secret the secret
         * @return this
         */
        public Builder secret(SecretKey secret) {
            this.secret = secret;
            secretInFile = true;
            return this;
        }

        /**
         * Hashes under a secret that is not stored in the file: {@link Open#secret} takes it.
         *
         * @param secret the secret
         * @return this
         */
        public Builder secretApart(SecretKey secret) {
            this.secret = secret;
            secretInFile = false;
            return this;
        }

        /**
         * Ignores case, in every program that asks or adds.
         *
         * @return this
         */
        public Builder ignoreCase() {
            ignoreCase = true;
            return this;
        }

        /**
         * Makes a key of several values: see {@link TamisFilter#join(byte[][])}.
         *
         * @param values 1 to 255
         * @return this
         */
        public Builder values(int values) {
            if (values < 1 || values > 255) {
                throw new IllegalArgumentException("values of a key: expected 1 to 255, got " + values);
            }
            this.values = values;
            return this;
        }

        /**
         * Makes it.
         *
         * @return the empty filter
         * @throws IllegalArgumentException if no filter can have these numbers, or there is no memory for it
         */
        public TamisFilter make() {
            BitLayout layout = Plan.of(kind, keys, rate);
            var hasher = new Hasher(secret == null ? seed : 0, secret, secretInFile, new KeyRule(ignoreCase, false, values));
            try {
                var words = new Words.OnHeap(Disk.allocated(layout.bytes()));
                return new TamisFilter(Header.of(layout, hasher, keys, rate), layout, words);
            } catch (TamisException tooLarge) {
                throw new IllegalArgumentException(tooLarge.getMessage(), tooLarge);
            }
        }
    }
}
