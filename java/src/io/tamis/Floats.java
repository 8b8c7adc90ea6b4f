package io.tamis;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;

/**
 * The functions that sizes are computed with, to the last bit as the other libraries have them on Linux: sizes decide
 * where bits are, so a file made here must have the size of one made there. Java's own may differ in the last bit.
 */
final class Floats {
    private Floats() {}

    private static final double LN2_HI = 6.93147180369123816490e-01;
    private static final double LN2_LO = 1.90821492927058770002e-10;

    private static int highWord(double x) {
        return (int) (Double.doubleToRawLongBits(x) >>> 32);
    }

    private static double withHighWord(double x, int high) {
        return Double.longBitsToDouble((long) high << 32 | Double.doubleToRawLongBits(x) & 0xFFFFFFFFL);
    }

    /**
     * The logarithm of 1 + x, for -1 <= x <= 0: the C library's steps, on a processor that multiplies and adds at once.
     */
    static double log1p(double x) {
        if (x == -1) {
            return Double.NEGATIVE_INFINITY;
        }
        if (!(x > -1 && x <= 0)) {
            return Double.NaN;
        }
        int hx = highWord(x);
        int ax = hx & 0x7FFFFFFF;
        if (ax < 0x3E200000) { // below 2^-29
            return ax < 0x3C900000 ? x : Math.fma(-x * x, 0.5, x);
        }
        int k = 0;
        int hu = 1;
        double f = x;
        double c = 0;
        if (hx > 0xBFD2BEC3) { // below -0.2929
            double u = 1 + x;
            hu = highWord(u);
            k = (hu >> 20) - 1023;
            c = (k > 0 ? 1 - (u - x) : x - (u - 1)) / u;
            hu &= 0x000FFFFF;
            if (hu < 0x6A09E) {
                u = withHighWord(u, hu | 0x3FF00000);
            } else {
                k += 1;
                u = withHighWord(u, hu | 0x3FE00000);
                hu = (0x00100000 - hu) >> 2;
            }
            f = u - 1;
        }
        double half = 0.5 * f * f;
        if (hu == 0) { // f is tiny
            if (f == 0) {
                return Math.fma(k, LN2_HI, Math.fma(k, LN2_LO, c));
            }
            double r = half * Math.fma(-0.66666666666666666, f, 1);
            return k == 0 ? f - r : Math.fma(k, LN2_HI, -((r - Math.fma(k, LN2_LO, c)) - f));
        }
        double s = f / (2 + f);
        double z = s * s;
        double z2 = z * z;
        double z4 = z2 * z2;
        double r1 = Math.fma(z, 2.857142874366239149e-01, 3.999999999940941908e-01);
        double r2 = Math.fma(z, 1.818357216161805012e-01, 2.222219843214978396e-01);
        double r3 = Math.fma(z, 1.479819860511658591e-01, 1.531383769920937332e-01);
        double r = Math.fma(z4 * z2, r3, Math.fma(z4, r2, Math.fma(z, 6.666666666666735130e-01, z2 * r1)));
        double product = s * (half + r);
        return k == 0 ? f - (half - product) : Math.fma(k, LN2_HI, -((half - (product + Math.fma(k, LN2_LO, c))) - f));
    }

    /**
     * e to the power of x, less 1, for x <= 0: the C library's steps, on a processor that multiplies and adds at once.
     */
    static double expm1(double x) {
        if (!(x <= 0)) {
            return Double.NaN;
        }
        int hx = highWord(x) & 0x7FFFFFFF;
        if (hx >= 0x4043687A) { // below -56 ln 2
            return -1;
        }
        int k = 0;
        double c = 0;
        if (hx > 0x3FD62E42) { // below -0.5 ln 2
            double hi;
            double lo;
            if (hx < 0x3FF0A2B2) { // above -1.5 ln 2
                hi = x + LN2_HI;
                lo = -LN2_LO;
                k = -1;
            } else {
                k = (int) Math.fma(1.44269504088896338700e+00, x, -0.5);
                hi = Math.fma(-k, LN2_HI, x);
                lo = k * LN2_LO;
            }
            x = hi - lo;
            c = (hi - x) - lo;
        } else if (hx < 0x3C900000) { // above -2^-54
            return x;
        }
        double half = 0.5 * x;
        double h = x * half;
        double h2 = h * h;
        double h4 = h2 * h2;
        double r1 = Math.fma(h, -3.33333333333331316428e-02, 1);
        double r2 = Math.fma(h, -7.93650757867487942473e-05, 1.58730158725481460165e-03);
        double r3 = Math.fma(h, -2.01099218183624371326e-07, 4.00821782732936239552e-06);
        double r = Math.fma(h4, r3, Math.fma(h2, r2, r1));
        double t = Math.fma(-r, half, 3);
        double e = h * ((r - t) / Math.fma(-x, t, 6));
        if (k == 0) {
            return x - Math.fma(x, e, -h);
        }
        e = Math.fma(x, e - c, -c) - h;
        if (k == -1) {
            return 0.5 * (x - e) - 0.5;
        }
        double y = 1 - (e - x);
        return withHighWord(y, highWord(y) + (k << 20)) - 1;
    }

    /** An integer power, by squaring. */
    static double power(double x, int n) {
        double result = 1;
        for (int left = Math.abs(n); ; ) {
            if ((left & 1) != 0) {
                result *= x;
            }
            left >>= 1;
            if (left == 0) {
                return n < 0 ? 1 / result : result;
            }
            x *= x;
        }
    }

    private static final MathContext DIGITS = new MathContext(45);
    private static final BigDecimal LN2 = new BigDecimal("0.693147180559945309417232121458176568075500134360255254120680");

    /**
     * The logarithm, rightly rounded: as large filters have more bits than a double has digits, the last one counts.
     */
    static double log(double x) {
        int exponent = Math.getExponent(x);
        BigDecimal mantissa = new BigDecimal(Math.scalb(x, -exponent)); // 1 to 2
        // 2 artanh((m - 1) / (m + 1))
        BigDecimal t = mantissa.subtract(BigDecimal.ONE).divide(mantissa.add(BigDecimal.ONE), DIGITS);
        BigDecimal square = t.multiply(t, DIGITS);
        BigDecimal sum = BigDecimal.ZERO;
        for (int i = 1; i < 100; i += 2) {
            sum = sum.add(t.divide(BigDecimal.valueOf(i), DIGITS), DIGITS);
            t = t.multiply(square, DIGITS);
        }
        return sum.multiply(BigDecimal.valueOf(2)).add(LN2.multiply(BigDecimal.valueOf(exponent))).doubleValue();
    }

    /** As people write it: 0.01, 1e-15. */
    static String shown(double x) {
        if (Double.isNaN(x) || Double.isInfinite(x)) {
            return Double.isNaN(x) ? "NaN" : x > 0 ? "inf" : "-inf";
        }
        BigDecimal exact = new BigDecimal(Double.toString(x)).stripTrailingZeros();
        if (x == 0 || Math.abs(x) >= 1e-3) {
            return exact.signum() == 0 ? "0" : exact.toPlainString();
        }
        int exponent = exact.precision() - exact.scale() - 1;
        return exact.scaleByPowerOfTen(-exponent).setScale(exact.precision() - 1, RoundingMode.UNNECESSARY).toPlainString() + "e" + exponent;
    }

    /** In digits alone. */
    static String plain(double x) {
        if (Double.isNaN(x) || Double.isInfinite(x) || x == 0) {
            return 1 / x == Double.NEGATIVE_INFINITY ? "-0" : shown(x);
        }
        return new BigDecimal(Double.toString(x)).stripTrailingZeros().toPlainString();
    }
}
