package shop;

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** A filter in this process, for one process. As a file it is Guava's own, which tamis reads and writes, too. */
public final class GuavaFilter implements SeenFilter {
    private final BloomFilter<CharSequence> bits;

    public GuavaFilter(long capacity, double rate) {
        this(BloomFilter.create(Funnels.stringFunnel(StandardCharsets.UTF_8), capacity, rate));
    }

    private GuavaFilter(BloomFilter<CharSequence> bits) {
        this.bits = bits;
    }

    @Override
    public boolean mightContain(String key) {
        return bits.mightContain(key);
    }

    @Override
    public void add(String key) {
        bits.put(key);
    }

    public static GuavaFilter read(Path file) throws IOException {
        try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
            return new GuavaFilter(BloomFilter.readFrom(in, Funnels.stringFunnel(StandardCharsets.UTF_8)));
        }
    }

    /** Under another name first: nobody reads half a file. */
    public void write(Path file) throws IOException {
        Path half = Path.of(file + ".new");
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(half))) {
            bits.writeTo(out);
        }
        Files.move(half, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }
}
