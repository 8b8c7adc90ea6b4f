package io.tamis;

/** Hashes of keys that are asked together, so that their cache misses overlap. */
final class HashBlock extends Probe {
    /** Keys whose cache misses overlap in {@link TamisFilter#mightContainAll}. */
    private static final int BLOCK = 64;

    private final long[] hi = new long[BLOCK];
    private final long[] lo = new long[BLOCK];
    private int length;

    @Override
    boolean at(long hi, long lo) {
        this.hi[length] = hi;
        this.lo[length++] = lo;
        return true;
    }

    boolean isFull() {
        return length == BLOCK;
    }

    /**
     * Asks all of them, and empties the block. Answers are appended to the first {@code answered}; returns how many
     * there are then.
     */
    int answer(Probe asking, boolean[] answers, int answered) {
        for (int i = 0; i < length; i++) {
            answers[answered++] = asking.at(hi[i], lo[i]);
        }
        length = 0;
        return answered;
    }
}
