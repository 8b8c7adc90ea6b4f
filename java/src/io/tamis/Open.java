package io.tamis;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/**
 * Options for opening a filter. {@link TamisFilter#load}, {@link TamisFilter#open} and {@link TamisFilter#fromBytes}
 * are enough without any.
 *
 * <pre>{@code
 * TamisFilter seen = new Open().secret(SecretKey.load(Path.of("secret.key"))).load(Path.of("seen.tamis"));
 * }</pre>
 *
 * <p>Everything is checked before memory is allocated by it; what is not a sound filter is a {@link TamisException},
 * whatever the bytes.
 */
public final class Open {
    private SecretKey secret;
    private boolean acceptLoss;
    private boolean verify;

    /** The defaults. */
    public Open() {}

    /**
     * The secret of a keyed filter that is kept apart from its file.
     *
     * @param secret the secret that it was made with
     * @return this
     */
    public Open secret(SecretKey secret) {
        this.secret = secret;
        return this;
    }

    /**
     * Opens a file that was open for writing when its machine went down. Keys that were added last may be missing from
     * it: the one case in which a filter can answer a false "no", so it must be asked for.
     *
     * @return this
     */
    public Open acceptLoss() {
        acceptLoss = true;
        return this;
    }

    /**
     * Compares the body of a mapped file with its checksum, where it has one. That reads the whole file. {@link #load}
     * and {@link #decode} always do.
     *
     * @return this
     */
    public Open verify() {
        verify = true;
        return this;
    }

    /**
     * Copies a whole file to the heap and checks every byte that is under a checksum. Keys can be added to kinds that
     * Java makes.
     *
     * @param file a regular file
     * @return the filter
     * @throws TamisException if the bytes are not a filter that can be asked
     * @throws IOException if the file can't be read
     */
    public TamisFilter load(Path file) throws IOException {
        return TamisFilter.of(Disk.load(file, secret, acceptLoss));
    }

    /**
     * Maps a file for reading, of any size: opening costs the same for each, and the system keeps in memory what is
     * asked for. Keys that other programs add to the file in place are seen as they arrive.
     *
     * <p>Nobody may truncate a file that is mapped: reading what is gone ends in an {@link InternalError}. Tamis
     * replaces files and never truncates them. A file that was replaced is the old one for whoever has it mapped; it is
     * unmapped when the filter is garbage.
     *
     * @param file a regular file
     * @return the filter, to which no keys can be added
     * @throws TamisException if the bytes are not a filter that can be asked
     * @throws IOException if the file can't be read
     */
    public TamisFilter map(Path file) throws IOException {
        return map(file, Disk.SEGMENT);
    }

    TamisFilter map(Path file, int segment) throws IOException {
        return TamisFilter.of(Disk.map(file, secret, acceptLoss, verify, segment));
    }

    /**
     * Copies a filter out of the bytes of a file.
     *
     * @param bytes all bytes of a file, or of {@link TamisFilter#toBytes}
     * @return the filter
     * @throws TamisException if the bytes are not a filter that can be asked
     */
    public TamisFilter decode(byte[] bytes) throws TamisException {
        Disk.Read seen = look(ByteBuffer.wrap(bytes));
        long[] words = Disk.allocated(seen.header.layout.bytes());
        for (int i = 0; i < words.length; i++) {
            words[i] = seen.words.get(i);
        }
        return TamisFilter.of(new Disk.Read(seen.header, new Words.OnHeap(words)));
    }

    /**
     * A filter in a buffer, from its position to its limit, without a copy: of any sort, also one that the caller has
     * mapped. The bytes must not change while it is asked, unless by a Tamis program that has the file open for
     * writing.
     *
     * @param bytes all bytes of a file; the buffer's position and order stay as they are
     * @return the filter, to which no keys can be added
     * @throws TamisException if the bytes are not a filter that can be asked
     */
    public TamisFilter view(ByteBuffer bytes) throws TamisException {
        return TamisFilter.of(look(bytes));
    }

    private Disk.Read look(ByteBuffer bytes) throws TamisException {
        ByteBuffer all = bytes.slice();
        var start = new byte[Math.min(Header.LENGTH, all.limit())];
        all.get(start);
        Header header = Header.decode(start, secret);
        header.checkFileLength(bytes.remaining());
        if (header.isMarked() && !acceptLoss) {
            // A copy of a file that was being written: it may lack keys.
            throw TamisException.unclean(null);
        }
        all.limit(Header.LENGTH + (int) header.layout.bytes());
        var words = new Words.InBuffer(all.slice());
        header.checkBody(words);
        return new Disk.Read(header, words);
    }
}
