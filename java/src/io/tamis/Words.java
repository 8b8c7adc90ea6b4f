package io.tamis;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A body: 64-bit words, on the heap, in a buffer, or in a file that is mapped in segments. */
abstract class Words {
    /** How many there are. */
    abstract long length();

    /** The word of this number. Others may be writing it: what is read is its old value or its new one. */
    abstract long get(long index);

    /** So many words from {@code first} on, as bytes. */
    final void copy(long first, int words, byte[] to) {
        ByteBuffer out = ByteBuffer.wrap(to).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < words; i++) {
            out.putLong(8 * i, get(first + i));
        }
    }

    /** How many bits are set in all. */
    final long ones() {
        long ones = 0;
        for (long i = 0; i < length(); i++) {
            ones += Long.bitCount(get(i));
        }
        return ones;
    }

    /** On the heap, where keys can be added. */
    static final class OnHeap extends Words {
        /** Opaque: never torn, and seen by other threads sooner or later. */
        static final VarHandle WORDS = MethodHandles.arrayElementVarHandle(long[].class);

        final long[] words;

        OnHeap(long[] words) {
            this.words = words;
        }

        @Override
        long length() {
            return words.length;
        }

        @Override
        long get(long index) {
            return (long) WORDS.getOpaque(words, (int) index);
        }
    }

    /** In one buffer. */
    static final class InBuffer extends Words {
        private final ByteBuffer bytes;

        /** A buffer of whole words from 0 on. */
        InBuffer(ByteBuffer bytes) {
            this.bytes = bytes.order(ByteOrder.LITTLE_ENDIAN);
        }

        @Override
        long length() {
            return bytes.limit() / 8;
        }

        @Override
        long get(long index) {
            return bytes.getLong((int) index << 3);
        }
    }

    /** In buffers of one size, a power of two; the last may be shorter. */
    static final class InSegments extends Words {
        private final ByteBuffer[] segments;
        private final long length;
        private final int shift;
        private final int mask;

        InSegments(ByteBuffer[] segments, long length, int segmentBytes) {
            for (ByteBuffer segment : segments) {
                segment.order(ByteOrder.LITTLE_ENDIAN);
            }
            this.segments = segments;
            this.length = length;
            shift = Integer.numberOfTrailingZeros(segmentBytes / 8);
            mask = segmentBytes / 8 - 1;
        }

        @Override
        long length() {
            return length;
        }

        @Override
        long get(long index) {
            return segments[(int) (index >>> shift)].getLong(((int) index & mask) << 3);
        }
    }
}
