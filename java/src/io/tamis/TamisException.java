package io.tamis;

import java.io.IOException;
import java.nio.file.Path;

/**
 * Bytes that are not a filter that can be asked: damaged, cut, open for writing, or keyed with a secret that was not
 * given. What it says is what the command and the other libraries say. A file that can't be read at all is an ordinary
 * {@link IOException}.
 */
public final class TamisException extends IOException {
    private static final long serialVersionUID = 1;

    /** Why a filter is refused. */
    public enum Reason {
        /** The bytes are not a sound filter. */
        CORRUPT,
        /**
         * The file was open for writing when its machine went down, or it is a copy of one that was: keys may be
         * missing.
         */
        UNCLEAN,
        /** The filter is keyed, and its secret is not in the file: see {@link Open#secret}. */
        KEY_NEEDED,
        /** The secret is not the one that the filter was made with. */
        WRONG_KEY,
        /** The filter is sound, and larger than the heap or an array: see {@link Open#map}. */
        TOO_LARGE
    }

    /** The reason. */
    private final Reason reason;

    TamisException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    /**
     * Why the filter is refused.
     *
     * @return the reason
     */
    public Reason reason() {
        return reason;
    }

    static TamisException corrupt(String what, Object expected, Object got) {
        return new TamisException(Reason.CORRUPT, "not a valid Tamis filter: " + what + ": expected " + expected + ", got " + got);
    }

    /** The path is null for bytes. */
    static TamisException unclean(Path path) {
        return new TamisException(
                Reason.UNCLEAN,
                (path == null ? "filter" : path)
                        + ": was open for writing when the machine went down, so the last keys added may be missing and it could give a false"
                        + " \"no\"; build it again from its keys, or accept the loss (Open.acceptLoss) and save it");
    }

    static TamisException keyNeeded() {
        return new TamisException(
                Reason.KEY_NEEDED, "the filter is keyed and its secret key is not in the file; pass the key it was created with");
    }

    static TamisException wrongKey() {
        return new TamisException(
                Reason.WRONG_KEY, "this is not the secret key the filter was created with; every answer would be wrong");
    }
}
