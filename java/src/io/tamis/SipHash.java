package io.tamis;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** SipHash-2-4 with 128 bits of output, under a secret. */
final class SipHash {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private long v0;
    private long v1;
    private long v2;
    private long v3;

    private SipHash(long k0, long k1) {
        v0 = k0 ^ 0x736F6D6570736575L;
        v1 = k1 ^ 0x646F72616E646F6DL ^ 0xEE;
        v2 = k0 ^ 0x6C7967656E657261L;
        v3 = k1 ^ 0x7465646279746573L;
    }

    /** A key's 128 bits, given to the probe. */
    static boolean hash(byte[] key, long k0, long k1, Probe probe) {
        var state = new SipHash(k0, k1);
        int whole = key.length & ~7;
        for (int at = 0; at < whole; at += 8) {
            state.take((long) LONGS.get(key, at));
        }
        // The last word holds the rest of the key, and its length on top.
        long last = (long) key.length << 56;
        for (int at = key.length - 1; at >= whole; at--) {
            last |= (key[at] & 255L) << 8 * (at - whole);
        }
        state.take(last);
        state.v2 ^= 0xEE;
        long lo = state.give();
        state.v1 ^= 0xDD;
        return probe.at(state.give(), lo);
    }

    private void take(long word) {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }

    private long give() {
        for (int i = 0; i < 4; i++) {
            round();
        }
        return v0 ^ v1 ^ v2 ^ v3;
    }

    private void round() {
        v0 += v1;
        v1 = Long.rotateLeft(v1, 13) ^ v0;
        v0 = Long.rotateLeft(v0, 32);
        v2 += v3;
        v3 = Long.rotateLeft(v3, 16) ^ v2;
        v0 += v3;
        v3 = Long.rotateLeft(v3, 21) ^ v0;
        v2 += v1;
        v1 = Long.rotateLeft(v1, 17) ^ v2;
        v2 = Long.rotateLeft(v2, 32);
    }
}
