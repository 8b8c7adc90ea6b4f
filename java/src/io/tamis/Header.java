package io.tamis;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The 128 bytes before a body. This is the only file that knows an offset. */
final class Header {
    static final int LENGTH = 128;
    static final long KEYS_UNKNOWN = -1;

    private static final byte[] MAGIC = {'T', 'A', 'M', 'I', 'S', '\r', '\n', 0x1A};
    private static final int VERSION = 1;
    private static final int XXH3 = 1;
    private static final int SIPHASH = 2;
    private static final int SECRET_APART = 1;

    private static final int AT_VERSION = 8;
    private static final int AT_KIND = 10;
    private static final int AT_HASH = 11;
    private static final int AT_FLAGS = 12;
    private static final int AT_CAPACITY = 16;
    private static final int AT_RATE = 24;
    private static final int AT_SECRET = 32;
    private static final int AT_KEY_CHECK = 48;
    private static final int AT_SHAPE_1 = 56;
    private static final int AT_SHAPE_2A = 64;
    private static final int AT_SHAPE_2B = 68;
    private static final int AT_SHAPE_3 = 72;
    private static final int AT_BODY_LENGTH = 80;
    private static final int AT_CHECKSUM = 88;
    private static final int AT_KEYS = 96;
    private static final int AT_BODY_CHECKSUM = 104;
    private static final int AT_MARK = 112;
    private static final int MARK_LENGTH = 16;

    /**
     * The bytes that were read, or will be written: kinds that Java can't make are saved with the shape that they had.
     */
    private final ByteBuffer bytes;

    final Layout layout;
    final Hasher hasher;

    private Header(ByteBuffer bytes, Layout layout, Hasher hasher) {
        this.bytes = bytes;
        this.layout = layout;
        this.hasher = hasher;
    }

    /** Of an empty filter. */
    static Header of(BitLayout layout, Hasher hasher, long capacity, double rate) {
        ByteBuffer h = ByteBuffer.allocate(LENGTH).order(ByteOrder.LITTLE_ENDIAN);
        h.put(MAGIC);
        h.putShort(AT_VERSION, (short) VERSION);
        h.put(AT_KIND, (byte) layout.kind.number());
        h.put(AT_HASH, (byte) (hasher.secret == null ? XXH3 : SIPHASH));
        boolean apart = hasher.secret != null && !hasher.secretInFile;
        h.putInt(AT_FLAGS, hasher.rule.encode() | (apart ? SECRET_APART : 0));
        h.putLong(AT_CAPACITY, capacity);
        h.putDouble(AT_RATE, rate);
        if (hasher.secret == null) {
            h.putLong(AT_SECRET, hasher.seed);
        } else if (apart) {
            h.putLong(AT_KEY_CHECK, hasher.secret.checkValue());
        } else {
            h.putLong(AT_SECRET, hasher.secret.k0);
            h.putLong(AT_SECRET + 8, hasher.secret.k1);
        }
        h.putLong(AT_SHAPE_1, layout.shape1());
        h.putInt(AT_SHAPE_2A, layout.shape2a());
        h.putInt(AT_SHAPE_2B, layout.shape2b());
        h.putLong(AT_BODY_LENGTH, layout.bytes());
        h.putLong(AT_CHECKSUM, Xxh3.hash64(h.array(), AT_CHECKSUM, 0));
        return new Header(h, layout, hasher);
    }

    /** Reads and checks all that can be checked without the body. The secret is null if none was given. */
    static Header decode(byte[] read, SecretKey secret) throws TamisException {
        if (read.length < LENGTH) {
            throw TamisException.corrupt("length", "at least 128 bytes of header", read.length + " bytes");
        }
        ByteBuffer h = ByteBuffer.wrap(Arrays.copyOf(read, LENGTH)).order(ByteOrder.LITTLE_ENDIAN);
        byte[] magic = Arrays.copyOf(read, MAGIC.length);
        if (!Arrays.equals(magic, MAGIC)) {
            throw TamisException.corrupt("magic", escaped(MAGIC), escaped(magic));
        }
        // Before the checksum: another version may sum up other bytes.
        int version = h.getShort(AT_VERSION) & 0xFFFF;
        if (version != VERSION) {
            throw TamisException.corrupt("format version", VERSION + " (a newer tamis may read it)", version);
        }
        long actual = Xxh3.hash64(h.array(), AT_CHECKSUM, 0);
        if (h.getLong(AT_CHECKSUM) != actual) {
            throw TamisException.corrupt("header checksum", hex(h.getLong(AT_CHECKSUM)), hex(actual));
        }
        int number = h.get(AT_KIND) & 255;
        if (number < 1 || number > Kind.values().length) {
            throw TamisException.corrupt("kind", "a known kind", number);
        }
        Kind kind = Kind.values()[number - 1];
        Hasher hasher = decodeHasher(h, secret);
        double rate = h.getDouble(AT_RATE);
        if (!(rate > 0 && rate < 1)) {
            throw TamisException.corrupt("rate", "between 0 and 1", Floats.plain(rate));
        }
        Layout layout =
                Layout.decode(kind, h.getLong(AT_SHAPE_1), h.getInt(AT_SHAPE_2A), h.getInt(AT_SHAPE_2B), h.getLong(AT_SHAPE_3));
        if (h.getLong(AT_BODY_LENGTH) != layout.bytes()) {
            throw TamisException.corrupt(
                    "body length", layout.bytes() + " as the shape needs", Long.toUnsignedString(h.getLong(AT_BODY_LENGTH)));
        }
        return new Header(h, layout, hasher);
    }

    private static Hasher decodeHasher(ByteBuffer h, SecretKey given) throws TamisException {
        int hash = h.get(AT_HASH) & 255;
        int flags = h.getInt(AT_FLAGS);
        long first = h.getLong(AT_SECRET);
        long second = h.getLong(AT_SECRET + 8);
        long check = h.getLong(AT_KEY_CHECK);
        KeyRule rule = KeyRule.decode(flags & ~SECRET_APART);
        boolean apart = (flags & SECRET_APART) != 0;
        if (rule == null || hash == XXH3 && apart) {
            throw TamisException.corrupt("flags", "known flags", "0x" + Integer.toHexString(flags));
        }
        if (hash == XXH3) {
            checkZero("bytes after the seed", second);
            checkZero("key check without a key", check);
            return new Hasher(first, null, false, rule);
        }
        if (hash != SIPHASH) {
            throw TamisException.corrupt("hash", "1 (XXH3) or 2 (SipHash)", hash);
        }
        if (!apart) {
            checkZero("key check beside the key", check);
            return new Hasher(0, SecretKey.of(Arrays.copyOfRange(h.array(), AT_SECRET, AT_KEY_CHECK)), true, rule);
        }
        checkZero("secret that is kept apart", first | second);
        if (given == null) {
            throw TamisException.keyNeeded();
        }
        if (given.checkValue() != check) {
            throw TamisException.wrongKey();
        }
        return new Hasher(0, given, false, rule);
    }

    private static void checkZero(String what, long value) throws TamisException {
        if (value != 0) {
            throw TamisException.corrupt(what, "zero", "other");
        }
    }

    /**
     * The whole file must be the header and its body; behind a growing filter there may be a layer that was never
     * finished.
     */
    void checkFileLength(long length) throws TamisException {
        long expected = layout.bytes() + LENGTH;
        if (length != expected && !(layout.kind == Kind.GROWING && length > expected)) {
            throw TamisException.corrupt("file length", expected + " bytes as the header says", length + " bytes");
        }
    }

    /** Throws if the body has another checksum than this one says; one that was last written in place has none. */
    void checkBody(Words words) throws TamisException {
        long expected = bytes.getLong(AT_BODY_CHECKSUM);
        if (expected == 0) {
            return;
        }
        var sum = new BodySum(layout.bytes(), bytes.getLong(AT_KEYS));
        sum.addAll(words);
        if (sum.get() != expected) {
            throw TamisException.corrupt("body checksum", hex(expected), hex(sum.get()));
        }
    }

    long capacity() {
        return bytes.getLong(AT_CAPACITY);
    }

    double rate() {
        return bytes.getDouble(AT_RATE);
    }

    /**
     * The number of keys, or {@link #KEYS_UNKNOWN}; a writer that died, or one still at work, may be between a key and
     * its count.
     */
    long keys() {
        return isMarked() ? KEYS_UNKNOWN : bytes.getLong(AT_KEYS);
    }

    boolean holdsSecret() {
        return hasher.secret != null && hasher.secretInFile;
    }

    boolean isMarked() {
        return (bytes.getLong(AT_MARK) | bytes.getLong(AT_MARK + 8)) != 0;
    }

    /** While the file is open for writing: the boot under which it is. */
    byte[] mark() {
        return Arrays.copyOfRange(bytes.array(), AT_MARK, AT_MARK + MARK_LENGTH);
    }

    /** The 128 bytes before a body of so many keys with this checksum. */
    byte[] sealed(long keys, long bodyChecksum) {
        ByteBuffer h = ByteBuffer.wrap(bytes.array().clone()).order(ByteOrder.LITTLE_ENDIAN);
        h.putLong(AT_KEYS, keys);
        h.putLong(AT_BODY_CHECKSUM, bodyChecksum);
        h.putLong(AT_MARK, 0);
        h.putLong(AT_MARK + 8, 0);
        return h.array();
    }

    boolean isSameAs(Header other) {
        return Arrays.equals(bytes.array(), other.bytes.array());
    }

    private static String hex(long x) {
        return String.format("%016x", x);
    }

    private static String escaped(byte[] text) {
        var out = new StringBuilder();
        for (byte b : text) {
            int quoted = "\t\r\n'\"\\".indexOf(b);
            if (quoted >= 0) {
                out.append('\\').append("trn'\"\\".charAt(quoted));
            } else if (b >= ' ' && b < 127) {
                out.append((char) b);
            } else {
                out.append(String.format("\\x%02x", b & 255));
            }
        }
        return out.toString();
    }
}
