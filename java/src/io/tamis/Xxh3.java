package io.tamis;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** XXH3 of xxHash 0.8: 128 bits for keys, 64 bits for checksums. */
final class Xxh3 {
    private Xxh3() {}

    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private static final long P1 = 0x9E3779B185EBCA87L;
    private static final long P2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P3 = 0x165667B19E3779F9L;
    private static final long P4 = 0x85EBCA77C2B2AE63L;
    private static final long P5 = 0x27D4EB2F165667C5L;
    private static final long Q1 = 0x9E3779B1L;
    private static final long Q2 = 0x85EBCA77L;
    private static final long Q3 = 0xC2B2AE3DL;

    /** The secret of XXH3, by eight bytes: constants of the compiler. */
    private static final long S0 = 0xBE4BA423396CFEB8L;
    private static final long S8 = 0x1CAD21F72C81017CL;
    private static final long S16 = 0xDB979083E96DD4DEL;
    private static final long S24 = 0x1F67B3B7A4A44072L;
    private static final long S32 = 0x78E5C0CC4EE679CBL;
    private static final long S40 = 0x2172FFCC7DD05A82L;
    private static final long S48 = 0x8E2443F7744608B8L;
    private static final long S56 = 0x4C263A81E69035E0L;
    private static final long S64 = 0xCB00C391BB52283CL;
    private static final long S72 = 0xA32E531B8B65D088L;
    private static final long S80 = 0x4EF90DA297486471L;
    private static final long S88 = 0xD8ACDEA946EF1938L;
    private static final long S96 = 0x3F349CE33F76FAA8L;
    private static final long S104 = 0x1D4F0BC7C7BBDCF9L;
    private static final long S112 = 0x3159B4CD4BE0518AL;
    private static final long S120 = 0x647378D9C97E9FC8L;
    private static final long S128 = 0xC3EBD33483ACC5EAL;
    private static final long S136 = 0xEB6313FAFFA081C5L;
    private static final long S144 = 0x49DAF0B751DD0D17L;
    private static final long S152 = 0x9E68D429265516D3L;
    private static final long S160 = 0xFCA1477D58BE162BL;
    private static final long S168 = 0xCE31D07AD1B8F88FL;
    private static final long S176 = 0x280416958F3ACB45L;
    private static final long S184 = 0x7E404BBBCAFBD7AFL;

    private static final byte[] SECRET = seeded(0);

    private static long get(byte[] bytes, int at) {
        return (long) LONGS.get(bytes, at);
    }

    /** A key's 128 bits, given to the probe. */
    static boolean hash(byte[] key, long seed, Probe probe) {
        int n = key.length;
        if (n > 16) {
            if (n <= 128) {
                return upTo128(key, n, seed, probe);
            }
            return n <= 240 ? upTo240(key, n, seed, probe) : longer(key, n, seed, probe);
        }
        if (n > 8) {
            return upTo16(key, n, seed, probe);
        }
        return n >= 4 ? upTo8(key, n, seed, probe) : upTo3(key, n, seed, probe);
    }

    private static boolean upTo3(byte[] key, int n, long seed, Probe probe) {
        if (n == 0) {
            return probe.at(avalanche64(seed ^ S80 ^ S88), avalanche64(seed ^ S64 ^ S72));
        }
        int low = (key[0] & 255) << 16 | (key[n >> 1] & 255) << 24 | key[n - 1] & 255 | n << 8;
        int high = Integer.rotateLeft(Integer.reverseBytes(low), 13);
        long flipLow = ((S0 ^ S0 >>> 32) & 0xFFFFFFFFL) + seed;
        long flipHigh = ((S8 ^ S8 >>> 32) & 0xFFFFFFFFL) - seed;
        return probe.at(avalanche64(high & 0xFFFFFFFFL ^ flipHigh), avalanche64(low & 0xFFFFFFFFL ^ flipLow));
    }

    private static boolean upTo8(byte[] key, int n, long seed, Probe probe) {
        seed ^= (long) Integer.reverseBytes((int) seed) << 32;
        long both = ((int) INTS.get(key, 0) & 0xFFFFFFFFL) + ((long) (int) INTS.get(key, n - 4) << 32);
        long keyed = both ^ (S16 ^ S24) + seed;
        long factor = P1 + (n << 2);
        long low = keyed * factor;
        long high = Bits.high(keyed, factor) + (low << 1);
        low ^= high >>> 3;
        low = (low ^ low >>> 35) * 0x9FB21C651E98DF25L;
        return probe.at(avalanche(high), low ^ low >>> 28);
    }

    private static boolean upTo16(byte[] key, int n, long seed, Probe probe) {
        long first = get(key, 0);
        long last = get(key, n - 8);
        long keyed = first ^ last ^ (S32 ^ S40) - seed;
        long low = keyed * P1 + ((long) (n - 1) << 54);
        last ^= (S48 ^ S56) + seed;
        long high = Bits.high(keyed, P1) + last + (last & 0xFFFFFFFFL) * (Q2 - 1);
        low ^= Long.reverseBytes(high);
        return probe.at(avalanche(Bits.high(low, P2) + high * P2), avalanche(low * P2));
    }

    private static boolean upTo128(byte[] key, int n, long seed, Probe probe) {
        long low = n * P1;
        long high = 0;
        if (n > 32) {
            if (n > 64) {
                if (n > 96) {
                    low = low + mix(key, 48, S96, S104, seed) ^ sum(key, n - 64);
                    high = high + mix(key, n - 64, S112, S120, seed) ^ sum(key, 48);
                }
                low = low + mix(key, 32, S64, S72, seed) ^ sum(key, n - 48);
                high = high + mix(key, n - 48, S80, S88, seed) ^ sum(key, 32);
            }
            low = low + mix(key, 16, S32, S40, seed) ^ sum(key, n - 32);
            high = high + mix(key, n - 32, S48, S56, seed) ^ sum(key, 16);
        }
        low = low + mix(key, 0, S0, S8, seed) ^ sum(key, n - 16);
        high = high + mix(key, n - 16, S16, S24, seed) ^ sum(key, 0);
        return probe.at(-avalanche(low * P1 + high * P4 + (n - seed) * P2), avalanche(low + high));
    }

    private static boolean upTo240(byte[] key, int n, long seed, Probe probe) {
        long low = n * P1;
        long high = 0;
        for (int at = 0; at + 32 <= n; at += 32) {
            if (at == 128) {
                low = avalanche(low);
                high = avalanche(high);
            }
            int secret = at < 128 ? at : at - 128 + 3;
            low = low + mix(key, at, get(SECRET, secret), get(SECRET, secret + 8), seed) ^ sum(key, at + 16);
            high = high + mix(key, at + 16, get(SECRET, secret + 16), get(SECRET, secret + 24), seed) ^ sum(key, at);
        }
        if (n < 160) {
            low = avalanche(low);
            high = avalanche(high);
        }
        low = low + mix(key, n - 16, get(SECRET, 103), get(SECRET, 111), -seed) ^ sum(key, n - 32);
        high = high + mix(key, n - 32, get(SECRET, 119), get(SECRET, 127), -seed) ^ sum(key, n - 16);
        return probe.at(-avalanche(low * P1 + high * P4 + (n - seed) * P2), avalanche(low + high));
    }

    private static boolean longer(byte[] key, int n, long seed, Probe probe) {
        var sum = new Stripes(seed);
        int at = 0;
        for (; n - at > Stripes.BLOCK; at += Stripes.BLOCK) {
            sum.block(key, at);
        }
        sum.end(key, at, n);
        return probe.at(sum.merge(192 - 64 - 11, ~(n * P2)), sum.merge(11, n * P1));
    }

    /** The 64-bit hash of 17 to 240 bytes, or of none: checksums need no others. */
    static long hash64(byte[] bytes, int n, long seed) {
        if (n == 0) {
            return avalanche64(seed ^ S56 ^ S64);
        }
        long sum = n * P1;
        if (n > 128) {
            for (int at = 0; at + 16 <= n; at += 16) {
                if (at == 128) {
                    sum = avalanche(sum);
                }
                int secret = at < 128 ? at : at - 128 + 3;
                sum += mix(bytes, at, get(SECRET, secret), get(SECRET, secret + 8), seed);
            }
            if (n < 144) {
                sum = avalanche(sum);
            }
            return avalanche(sum + mix(bytes, n - 16, get(SECRET, 119), get(SECRET, 127), seed));
        }
        for (int pair = (n - 1) / 32; pair >= 0; pair--) {
            int secret = 32 * pair;
            sum += mix(bytes, 16 * pair, get(SECRET, secret), get(SECRET, secret + 8), seed);
            sum += mix(bytes, n - 16 * pair - 16, get(SECRET, secret + 16), get(SECRET, secret + 24), seed);
        }
        return avalanche(sum);
    }

    private static long mix(byte[] bytes, int at, long secret, long next, long seed) {
        return Bits.fold(get(bytes, at) ^ secret + seed, get(bytes, at + 8) ^ next - seed);
    }

    private static long sum(byte[] bytes, int at) {
        return get(bytes, at) + get(bytes, at + 8);
    }

    private static long avalanche(long x) {
        x = (x ^ x >>> 37) * 0x165667919E3779F9L;
        return x ^ x >>> 32;
    }

    private static long avalanche64(long x) {
        x = (x ^ x >>> 33) * P2;
        x = (x ^ x >>> 29) * P3;
        return x ^ x >>> 32;
    }

    private static byte[] seeded(long seed) {
        long[] parts = {
            S0, S8, S16, S24, S32, S40, S48, S56, S64, S72, S80, S88, S96, S104, S112, S120, S128, S136, S144, S152, S160, S168, S176, S184
        };
        var secret = new byte[192];
        for (int i = 0; i < parts.length; i++) {
            LONGS.set(secret, 8 * i, i % 2 == 0 ? parts[i] + seed : parts[i] - seed);
        }
        return secret;
    }

    /** What more than 240 bytes are hashed with: blocks of 1024 bytes, then the end. */
    static final class Stripes {
        static final int BLOCK = 1024;

        private final byte[] secret;
        private final long[] sums = {Q3, P1, P2, P3, P4, Q2, P5, Q1};

        Stripes(long seed) {
            secret = seed == 0 ? SECRET : seeded(seed);
        }

        /** A block that is not the last. */
        void block(byte[] bytes, int at) {
            for (int i = 0; i < 16; i++) {
                stripe(bytes, at + 64 * i, 8 * i);
            }
            for (int i = 0; i < 8; i++) {
                sums[i] = (sums[i] ^ sums[i] >>> 47 ^ get(secret, 128 + 8 * i)) * Q1;
            }
        }

        /** The last block, of 1 to 1024 bytes up to the end; 64 bytes before the end are looked at in any case. */
        void end(byte[] bytes, int at, int end) {
            int stripes = (end - at - 1) / 64;
            for (int i = 0; i < stripes; i++) {
                stripe(bytes, at + 64 * i, 8 * i);
            }
            stripe(bytes, end - 64, 192 - 64 - 7);
        }

        long merge(int from, long start) {
            for (int i = 0; i < 8; i += 2) {
                start += Bits.fold(sums[i] ^ get(secret, from + 8 * i), sums[i + 1] ^ get(secret, from + 8 * i + 8));
            }
            return avalanche(start);
        }

        /** Of a checksum over so many bytes. */
        long merge64(long length) {
            return merge(11, length * P1);
        }

        private void stripe(byte[] bytes, int at, int from) {
            for (int i = 0; i < 8; i++) {
                long data = get(bytes, at + 8 * i);
                long keyed = data ^ get(secret, from + 8 * i);
                sums[i ^ 1] += data;
                sums[i] += (keyed & 0xFFFFFFFFL) * (keyed >>> 32);
            }
        }
    }
}
