package io.tamis;

/** How the bytes of a key become 128 bits: the hash, its seed or secret, and the rule by which keys are made. */
final class Hasher {
    final long seed;
    /** Null: XXH3 under the seed. Else SipHash under this secret. */
    final SecretKey secret;
    /** Whether the secret is stored in the file. */
    final boolean secretInFile;

    final KeyRule rule;
    /** The usual way: XXH3, and keys as they are. */
    final boolean isPlain;

    Hasher(long seed, SecretKey secret, boolean secretInFile, KeyRule rule) {
        this.seed = seed;
        this.secret = secret;
        this.secretInFile = secretInFile;
        this.rule = rule;
        isPlain = secret == null && rule.isExact();
    }

    /** Applies the rule, hashes, and looks. */
    boolean hash(byte[] key, Probe probe) {
        return isPlain ? probe.of(key, seed) : hashExact(rule.apply(key), probe);
    }

    /** Hashes a key unchanged: a number, or a key to which the rule was already applied. */
    boolean hashExact(byte[] key, Probe probe) {
        return secret == null ? probe.of(key, seed) : SipHash.hash(key, secret.k0, secret.k1, probe);
    }

    private String name() {
        return secret == null ? "xxh3-128" : "siphash-2-4-128";
    }

    /** Throws unless both give every key the same hash, wherever a secret is stored. */
    void checkLike(Hasher other) {
        if (!name().equals(other.name())) {
            throw unlike("the hash", name(), other.name());
        }
        if (seed != other.seed) {
            throw unlike("the seed", Long.toUnsignedString(seed), Long.toUnsignedString(other.seed));
        }
        if (!rule.equals(other.rule)) {
            throw unlike("the rule for keys", rule, other.rule);
        }
        if (secret != null && !secret.equals(other.secret)) {
            throw unlike("the secret key", "one", "another");
        }
    }

    static IllegalArgumentException unlike(String what, Object ours, Object theirs) {
        return new IllegalArgumentException("the filters differ and can't be combined: " + what + " is " + ours + " in one and " + theirs
                + " in the other; create both with the same parameters, or one from the other's template");
    }
}
