package io.tamis;

/** The arithmetic that the format uses throughout. */
final class Bits {
    private Bits() {}

    /** A bijection. */
    static long mix(long x) {
        x += 0x9E3779B97F4A7C15L;
        x = (x ^ (x >>> 32)) * 0xD6E8FEB86659FD93L;
        return x ^ (x >>> 32);
    }

    /** The upper half of the product of two numbers without a sign. */
    static long high(long a, long b) {
        return Math.multiplyHigh(a, b) + ((a >> 63) & b) + ((b >> 63) & a);
    }

    /** From 0 to n - 1; n is below 2^63. */
    static long reduce(long x, long n) {
        return Math.multiplyHigh(x, n) + ((x >> 63) & n);
    }

    /** Both halves of the product, by exclusive or. */
    static long fold(long a, long b) {
        return a * b ^ high(a, b);
    }

    static long roundUp(long x, long multiple) {
        return (x + multiple - 1) / multiple * multiple;
    }
}
