package io.tamis;

import java.nio.charset.StandardCharsets;

/** Text as the bytes of a key. */
final class Utf8 {
    private Utf8() {}

    /**
     * The UTF-8 of a text.
     *
     * @throws IllegalArgumentException if half of a surrogate pair is in it, which has none: Java would put a question mark
     *     in its place, and different keys would be the same
     */
    static byte[] of(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (Character.isSurrogate(c)) {
                if (!Character.isHighSurrogate(c) || i + 1 == text.length() || !Character.isLowSurrogate(text.charAt(i + 1))) {
                    throw new IllegalArgumentException(String.format(
                            "key: expected text that has UTF-8, got the surrogate U+%04X in it, at index %d; encode it yourself, in a way that stays the same",
                            (int) c, i));
                }
                i++;
            }
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
