package io.tamis;

import java.math.BigDecimal;
import java.math.RoundingMode;

/**
 * The functions that sizes are computed with, to the last bit as the other libraries have them: sizes decide where bits
 * are, so a file made here must have the size of one made there. They compute as FreeBSD does, whose exp, expm1 and pow
 * are those of StrictMath.
 */
final class Floats {
    private Floats() {}

    /** The logarithm, for normal numbers above 0. */
    static double log(double x) {
        if (!(x >= Double.MIN_NORMAL && x < Double.POSITIVE_INFINITY)) {
            return x == 0 ? Double.NEGATIVE_INFINITY : Double.NaN;
        }
        return x == 1 ? 0 : log(x, 0);
    }

    /** The logarithm of 1 + x, for -1 <= x <= 0. */
    static double log1p(double x) {
        if (!(x > -1 && x <= 0)) {
            return x == -1 ? Double.NEGATIVE_INFINITY : Double.NaN;
        }
        if (x > -0x1p-53) {
            return x;
        }
        if (highWord(x) <= 0xBFD2BEC4) { // above sqrt(2) / 2 - 1
            return log(x, 0, 0);
        }
        double sum = 1 + x;
        return log(sum, (x - (sum - 1)) / sum);
    }

    /** The logarithm of x, less what rounding had added to it, relatively. */
    private static double log(double x, double less) {
        int high = highWord(x) + (0x3FF00000 - 0x3FE6A09E);
        int exponent = (high >> 20) - 1023;
        long bits = (long) ((high & 0xFFFFF) + 0x3FE6A09E) << 32 | Double.doubleToRawLongBits(x) & 0xFFFFFFFFL;
        return log(Double.longBitsToDouble(bits) - 1, exponent, less);
    }

    /** The logarithm of (1 + f) 2^exponent, for 1 + f between sqrt(2) / 2 and sqrt(2). */
    private static double log(double f, double exponent, double less) {
        double half = 0.5 * f * f;
        double s = f / (2 + f);
        double z = s * s;
        double w = z * z;
        double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
        double odd = z * (6.666666666666735130e-01
                + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
        double low = exponent * 1.90821492927058770002e-10 + less;
        return s * (half + (odd + even)) + low - half + f + exponent * 6.93147180369123816490e-01;
    }

    private static int highWord(double x) {
        return (int) (Double.doubleToRawLongBits(x) >>> 32);
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
