package io.tamis;

/**
 * What is done with the hash of a key. Hash functions end by calling it: so the two halves stay in registers, and no
 * object is made for a key.
 */
abstract class Probe {
    /** The upper and the lower half of the hash. */
    abstract boolean at(long hi, long lo);

    /**
     * Hashes the usual way and looks. A subclass whose speed matters says the same once more: there the compiler knows
     * which class it is, and the whole path becomes one piece of code.
     */
    boolean of(byte[] key, long seed) {
        return Xxh3.hash(key, seed, this);
    }
}
