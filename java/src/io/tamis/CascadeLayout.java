package io.tamis;

/** A finished block list with an allow list: two ribbons, described in the first line of the body. */
final class CascadeLayout extends Layout {
    private final long lines;
    /** Null until the body was read. */
    private final RibbonLayout block;

    private final RibbonLayout decides;

    private CascadeLayout(long lines, RibbonLayout block, RibbonLayout decides) {
        super(Kind.CASCADE);
        this.lines = lines;
        this.block = block;
        this.decides = decides;
    }

    static CascadeLayout decode(long lines) throws TamisException {
        check("lines", "1 to 2^54", lines, 1, 1L << 54);
        return new CascadeLayout(lines, null, null);
    }

    @Override
    long bytes() {
        return 64 * lines;
    }

    @Override
    Layout complete(Words words, double promise) throws TamisException {
        RibbonLayout first = RibbonLayout.decode(words.get(0), words.get(1), words.get(2), 8);
        RibbonLayout second = RibbonLayout.decode(words.get(3), words.get(4), words.get(5), 8 + first.bytes() / 8);
        if ((words.get(6) | words.get(7)) != 0) {
            throw TamisException.corrupt("reserved words of the levels", "zero", "other");
        }
        if (1 + first.bytes() / 64 + second.bytes() / 64 != lines) {
            throw TamisException.corrupt("levels", lines + " lines as the header says", "others");
        }
        return new CascadeLayout(lines, first, second);
    }

    @Override
    boolean contains(Words words, long hi, long lo) {
        return block.contains(words, hi, lo) && decides.contains(words, hi, Bits.mix(lo ^ 0x243F6A8885A308D3L));
    }

    @Override
    double keysNow(Words words) {
        return block.keysNow(words);
    }

    @Override
    double rateNow(Words words) {
        return block.rateNow(words) * decides.rateNow(words);
    }
}
