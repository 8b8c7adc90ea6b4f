package io.tamis;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/** Filters in files, read and mapped. */
final class Disk {
    private Disk() {}

    /** Bytes of a mapped segment: a power of two, since Java maps less than 2 GB at once. */
    static final int SEGMENT = 1 << 30;

    /** More than a process of 47-bit addresses can map. */
    private static final int MOST_SEGMENTS = 1 << 17;

    /** A header and its body. */
    static final class Read {
        final Header header;
        final Words words;

        Read(Header header, Words words) {
            this.header = header;
            this.words = words;
        }
    }

    /** What is done with a file whose header was checked. */
    private interface Body {
        Words of(FileChannel file, Header header) throws IOException;
    }

    /** Copies a file to the heap, and compares it with its checksum. */
    static Read load(Path path, SecretKey secret, boolean acceptLoss) throws IOException {
        return read(path, secret, acceptLoss, true, (file, header) -> {
            long[] words = allocated(header.layout.bytes());
            ByteBuffer piece = ByteBuffer.allocate(BodySum.PIECE).order(ByteOrder.LITTLE_ENDIAN);
            file.position(Header.LENGTH);
            for (int at = 0; at < words.length; at += piece.limit() / 8) {
                piece.clear().limit((int) Math.min(piece.capacity(), 8L * (words.length - at)));
                while (piece.hasRemaining()) {
                    if (file.read(piece) < 0) {
                        throw new IOException("reading " + path + ": it ended while it was read");
                    }
                }
                piece.flip();
                piece.asLongBuffer().get(words, at, piece.limit() / 8);
            }
            return new Words.OnHeap(words);
        });
    }

    /** Maps a file for reading. */
    static Read map(Path path, SecretKey secret, boolean acceptLoss, boolean verify, int segment) throws IOException {
        return read(path, secret, acceptLoss, verify, (file, header) -> {
            long length = header.layout.bytes();
            if (length / segment >= MOST_SEGMENTS) {
                throw new TamisException(
                        TamisException.Reason.TOO_LARGE, "mapping " + path + ": expected what an address space holds, got " + length + " bytes");
            }
            var segments = new ByteBuffer[(int) ((length + segment - 1) / segment)];
            for (int i = 0; i < segments.length; i++) {
                long at = (long) i * segment;
                segments[i] = file.map(MapMode.READ_ONLY, Header.LENGTH + at, Math.min(segment, length - at));
            }
            return segments.length == 1 ? new Words.InBuffer(segments[0]) : new Words.InSegments(segments, length / 8, segment);
        });
    }

    private static Read read(Path path, SecretKey secret, boolean acceptLoss, boolean verify, Body body) throws IOException {
        while (true) {
            checkRegular(path);
            try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
                Header header = readHeader(file, secret);
                if (header.isMarked() && !acceptLoss && !isOfThisBoot(header.mark())) {
                    throw TamisException.unclean(path);
                }
                Words words = body.of(file, header);
                if (verify) {
                    try {
                        header.checkBody(words);
                    } catch (TamisException damaged) {
                        // A writer has come since, and the checksum is that of a body that no longer exists.
                        if (!readHeader(file, secret).isSameAs(header)) {
                            continue;
                        }
                        throw damaged;
                    }
                }
                return new Read(header, words);
            }
        }
    }

    private static Header readHeader(FileChannel file, SecretKey secret) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(Header.LENGTH);
        while (bytes.hasRemaining() && file.read(bytes, bytes.position()) > 0) {
            // until the header is there, or the file ends
        }
        Header header = Header.decode(Arrays.copyOf(bytes.array(), bytes.position()), secret);
        // Asked after the header was read: a growing file gets longer first.
        header.checkFileLength(file.size());
        return header;
    }

    /** A device may do anything when it is opened, and a pipe waits for a partner. */
    private static void checkRegular(Path path) throws IOException {
        if (Files.exists(path) && !Files.isRegularFile(path)) {
            throw new IOException("opening " + path + ": expected a regular file, got a folder, a device, a pipe or a socket");
        }
    }

    /** Whether a mark is that of the running system: then whatever was written to the file is still there. */
    private static boolean isOfThisBoot(byte[] mark) {
        try {
            String digits = Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip().replace("-", "");
            return digits.length() == 32 && new BigInteger(digits, 16).equals(new BigInteger(1, mark));
        } catch (IOException | NumberFormatException e) {
            return false; // a boot that can't be determined
        }
    }

    /** Zeros on the heap, if there is room. */
    static long[] allocated(long bytes) throws TamisException {
        if (bytes / 8 <= Integer.MAX_VALUE - 8 && bytes <= Runtime.getRuntime().maxMemory()) {
            try {
                return new long[(int) (bytes / 8)];
            } catch (OutOfMemoryError e) {
                // reported like any other size that is too large
            }
        }
        throw new TamisException(
                TamisException.Reason.TOO_LARGE,
                "allocating the filter: out of memory: it needs " + bytes
                        + " bytes; fewer keys or a higher rate need less, a larger heap (-Xmx) has more, and a mapped file (Open.map) needs none;"
                        + " an array has 16 GB at most");
    }
}
