package io.tamis;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** How keys are made from what users have; the header of a filter records it. */
final class KeyRule {
    static final KeyRule EXACT = new KeyRule(false, false, 1);

    final boolean ignoreCase;
    final boolean url;
    /** Values of a key. */
    final int values;

    KeyRule(boolean ignoreCase, boolean url, int values) {
        this.ignoreCase = ignoreCase;
        this.url = url;
        this.values = values;
    }

    /** The rule in these flags, or null if they mean something else, too. */
    static KeyRule decode(int flags) {
        int values = flags >>> 8;
        if ((flags & 0xF9) != 0 || values == 1 || values > 255) {
            return null;
        }
        return new KeyRule((flags & 2) != 0, (flags & 4) != 0, Math.max(values, 1));
    }

    int encode() {
        return (ignoreCase ? 2 : 0) | (url ? 4 : 0) | (values == 1 ? 0 : values << 8);
    }

    /** Whether a key stays as it is. One of several values was made by {@link #join}. */
    boolean isExact() {
        return values > 1 || !ignoreCase && !url;
    }

    /** The key that a value is. */
    byte[] apply(byte[] value) {
        return isExact() ? value : part(value);
    }

    /** The key of several values, each behind its length. */
    byte[] join(byte[][] values) {
        var parts = new byte[values.length][];
        long length = 0;
        for (int i = 0; i < values.length; i++) {
            parts[i] = part(values[i]);
            length += 8 + parts[i].length;
        }
        if (length > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("values: expected less than 2 GB, got " + length + " bytes");
        }
        ByteBuffer key = ByteBuffer.allocate((int) length).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] part : parts) {
            key.putLong(part.length).put(part);
        }
        return key.array();
    }

    private byte[] part(byte[] value) {
        if (url) {
            throw new UnsupportedOperationException(
                    "the filter normalises URLs as the WHATWG's standard says, and Java has no parser for that; make the key elsewhere, and use"
                            + " mightContainExact or putExact with what such a parser's serialiser gives, without the fragment"
                            + (ignoreCase ? ", in lower case" : "")
                            + "; or ask through tamis serve");
        }
        return ignoreCase ? LowerCase.of(value) : value;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof KeyRule && encode() == ((KeyRule) other).encode();
    }

    @Override
    public int hashCode() {
        return encode();
    }

    @Override
    public String toString() {
        if (equals(EXACT)) {
            return "exact";
        }
        String text = ignoreCase ? "case ignored" : "";
        if (url) {
            text += (text.isEmpty() ? "" : ", ") + "URLs normalised";
        }
        return values == 1 ? text : text + (text.isEmpty() ? "" : ", ") + values + " values joined";
    }
}
