package io.tamis;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * Keys in lower case, as the format says: every character by its own mapping, regardless of its neighbours. The
 * mappings are Unicode 17's and not the Java machine's: an older machine would deny keys that a newer one has added.
 */
final class LowerCase {
    private LowerCase() {}

    /** The only character whose mapping is two. */
    private static final int DOTTED_I = 0x130;

    private static final String DOTTED_I_LOWER = "i\u0307";

    /**
     * Runs of capitals: the first, how many, every one (:) or every second (/), and how far the small letter is. In
     * hex, the last decimal.
     */
    private static final String RUNS =
            "41+1a:32 c0+17:32 d8+7:32 100+18/1 132+3/1 139+8/1 14a+17/1 178+1:-121 179+3/1 181+1:210 182+2/1 186+1:206 "
            + "187+1:1 189+2:205 18b+1:1 18e+1:79 18f+1:202 190+1:203 191+1:1 193+1:205 194+1:207 196+1:211 197+1:209 198+1:1 "
            + "19c+1:211 19d+1:213 19f+1:214 1a0+3/1 1a6+1:218 1a7+1:1 1a9+1:218 1ac+1:1 1ae+1:218 1af+1:1 1b1+2:217 1b3+2/1 "
            + "1b7+1:219 1b8+1:1 1bc+1:1 1c4+1:2 1c5+1:1 1c7+1:2 1c8+1:1 1ca+1:2 1cb+9/1 1de+9/1 1f1+1:2 1f2+2/1 1f6+1:-97 "
            + "1f7+1:-56 1f8+14/1 220+1:-130 222+9/1 23a+1:10795 23b+1:1 23d+1:-163 23e+1:10792 241+1:1 243+1:-195 244+1:69 "
            + "245+1:71 246+5/1 370+2/1 376+1:1 37f+1:116 386+1:38 388+3:37 38c+1:64 38e+2:63 391+11:32 3a3+9:32 3cf+1:8 "
            + "3d8+c/1 3f4+1:-60 3f7+1:1 3f9+1:-7 3fa+1:1 3fd+3:-130 400+10:80 410+20:32 460+11/1 48a+1b/1 4c0+1:15 4c1+7/1 "
            + "4d0+30/1 531+26:48 10a0+26:7264 10c7+1:7264 10cd+1:7264 13a0+50:38864 13f0+6:8 1c89+1:1 1c90+2b:-3008 "
            + "1cbd+3:-3008 1e00+4b/1 1e9e+1:-7615 1ea0+30/1 1f08+8:-8 1f18+6:-8 1f28+8:-8 1f38+8:-8 1f48+6:-8 1f59+4/-8 "
            + "1f68+8:-8 1f88+8:-8 1f98+8:-8 1fa8+8:-8 1fb8+2:-8 1fba+2:-74 1fbc+1:-9 1fc8+4:-86 1fcc+1:-9 1fd8+2:-8 "
            + "1fda+2:-100 1fe8+2:-8 1fea+2:-112 1fec+1:-7 1ff8+2:-128 1ffa+2:-126 1ffc+1:-9 2126+1:-7517 212a+1:-8383 "
            + "212b+1:-8262 2132+1:28 2160+10:16 2183+1:1 24b6+1a:26 2c00+30:48 2c60+1:1 2c62+1:-10743 2c63+1:-3814 "
            + "2c64+1:-10727 2c67+3/1 2c6d+1:-10780 2c6e+1:-10749 2c6f+1:-10783 2c70+1:-10782 2c72+1:1 2c75+1:1 2c7e+2:-10815 "
            + "2c80+32/1 2ceb+2/1 2cf2+1:1 a640+17/1 a680+e/1 a722+7/1 a732+1f/1 a779+2/1 a77d+1:-35332 a77e+5/1 a78b+1:1 "
            + "a78d+1:-42280 a790+2/1 a796+a/1 a7aa+1:-42308 a7ab+1:-42319 a7ac+1:-42315 a7ad+1:-42305 a7ae+1:-42308 "
            + "a7b0+1:-42258 a7b1+1:-42282 a7b2+1:-42261 a7b3+1:928 a7b4+8/1 a7c4+1:-48 a7c5+1:-42307 a7c6+1:-35384 a7c7+2/1 "
            + "a7cb+1:-42343 a7cc+8/1 a7dc+1:-42561 a7f5+1:1 ff21+1a:32 10400+28:40 104b0+24:40 10570+b:39 1057c+f:39 "
            + "1058c+7:39 10594+2:39 10c80+33:64 10d50+16:32 118a0+20:32 16e40+20:32 16ea0+19:27 1e900+22:34";

    private static final int[] FIRST;
    private static final int[] LAST;
    private static final int[] STEP;
    private static final int[] AWAY;

    static {
        String[] runs = RUNS.split(" ");
        FIRST = new int[runs.length];
        LAST = new int[runs.length];
        STEP = new int[runs.length];
        AWAY = new int[runs.length];
        for (int i = 0; i < runs.length; i++) {
            String[] run = runs[i].split("[+:/]");
            STEP[i] = runs[i].indexOf('/') < 0 ? 1 : 2;
            FIRST[i] = Integer.parseInt(run[0], 16);
            LAST[i] = FIRST[i] + (Integer.parseInt(run[1], 16) - 1) * STEP[i];
            AWAY[i] = Integer.parseInt(run[2]);
        }
    }

    /** The same bytes in lower case; what is not UTF-8 has only A to Z changed. */
    static byte[] of(byte[] key) {
        for (byte b : key) {
            if (b < 0) {
                return text(key);
            }
        }
        return ascii(key);
    }

    private static byte[] text(byte[] key) {
        CharBuffer chars;
        try {
            chars = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(key)); // a new decoder reports what is malformed
        } catch (CharacterCodingException e) {
            return ascii(key);
        }
        var lower = new StringBuilder(chars.length() + 1);
        chars.codePoints().forEach(c -> {
            if (c == DOTTED_I) {
                lower.append(DOTTED_I_LOWER);
            } else {
                lower.appendCodePoint(of(c));
            }
        });
        return lower.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] ascii(byte[] key) {
        byte[] lower = key.clone();
        for (int i = 0; i < lower.length; i++) {
            if (lower[i] >= 'A' && lower[i] <= 'Z') {
                lower[i] += 'a' - 'A';
            }
        }
        return lower;
    }

    private static int of(int c) {
        int low = 0;
        int high = FIRST.length; // the run, if any, is the last that begins at c or before
        while (high - low > 1) {
            int middle = (low + high) >>> 1;
            if (FIRST[middle] <= c) {
                low = middle;
            } else {
                high = middle;
            }
        }
        boolean inside = c >= FIRST[low] && c <= LAST[low] && (c - FIRST[low]) % STEP[low] == 0;
        return inside ? c + AWAY[low] : c;
    }
}
