package io.tamis;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Arrays;

/** The 16 secret bytes of a keyed filter. {@link #toString} hides them. */
public final class SecretKey {
    private final byte[] bytes;
    /** The two halves, as SipHash takes them. */
    final long k0;
    final long k1;

    private SecretKey(byte[] bytes) {
        this.bytes = bytes;
        ByteBuffer words = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        k0 = words.getLong(0);
        k1 = words.getLong(8);
    }

    /**
     * A secret that the caller provides.
     *
     * @param bytes 16 bytes
     * @return the secret
     * @throws IllegalArgumentException if they are not 16
     */
    public static SecretKey of(byte[] bytes) {
        if (bytes.length != 16) {
            throw new IllegalArgumentException("secret key: expected 16 bytes, got " + bytes.length);
        }
        return new SecretKey(bytes.clone());
    }

    /**
     * A new secret from the system's random source.
     *
     * @return the secret
     */
    public static SecretKey random() {
        var bytes = new byte[16];
        new SecureRandom().nextBytes(bytes);
        return new SecretKey(bytes);
    }

    /**
     * The secret in a key file: 32 hexadecimal digits.
     *
     * @param file the key file, as {@code --secret-file} takes it
     * @return the secret
     * @throws IOException if the file can't be read
     * @throws IllegalArgumentException if it holds something else
     */
    public static SecretKey load(Path file) throws IOException {
        byte[] read;
        try (var in = Files.newInputStream(file)) {
            read = in.readNBytes(4096); // no key file is as long
        }
        String digits = new String(read, StandardCharsets.ISO_8859_1).strip();
        var bytes = new byte[16];
        for (int i = 0; i < 32; i++) {
            int digit = digits.length() == 32 && digits.charAt(i) < 128 ? Character.digit(digits.charAt(i), 16) : -1;
            if (digit < 0) {
                throw new IllegalArgumentException(
                        "key file: expected 32 hexadecimal digits, got " + digits.length() + " other bytes in " + file);
            }
            bytes[i / 2] |= (byte) (digit << (i % 2 == 0 ? 4 : 0));
        }
        return new SecretKey(bytes);
    }

    /**
     * The 16 bytes, for storing them somewhere safe.
     *
     * @return a copy
     */
    public byte[] toBytes() {
        return bytes.clone();
    }

    /** Recognises the secret in a header that does not hold it. */
    long checkValue() {
        var lo = new long[1];
        SipHash.hash("tamis key check".getBytes(StandardCharsets.US_ASCII), k0, k1, new Probe() {
            @Override
            boolean at(long high, long low) {
                lo[0] = low;
                return true;
            }
        });
        return lo[0];
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SecretKey && Arrays.equals(bytes, ((SecretKey) other).bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    @Override
    public String toString() {
        return "SecretKey(..)";
    }
}
