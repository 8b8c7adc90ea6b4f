package io.tamis;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

/**
 * Files that appear whole or not at all: written under another name, synced, then renamed. A failure leaves what was
 * there.
 */
final class Replacement {
    private Replacement() {}

    private static final Set<PosixFilePermission> OWNER_ONLY =
            EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE);
    /** As many as Linux follows. */
    private static final int MOST_LINKS = 40;

    /** What is written to the new file. */
    interface Content {
        void write(FileChannel file) throws IOException;
    }

    /**
     * Replaces a file, or makes a new one. One that holds a secret is readable by its owner only, unless it replaces
     * another such file.
     */
    static void write(Path path, boolean holdsSecret, Content content) throws IOException {
        Path target = resolved(path);
        if (Files.exists(target) && !Files.isRegularFile(target)) {
            throw new FileSystemException(path.toString(), null, "expected a regular file, got a folder, a device, a pipe or a socket");
        }
        checkIdle(target);
        boolean ownerOnly = holdsSecret && !heldSecret(target);
        Path half = target.resolveSibling(temporaryName());
        try {
            // Others may read a complete file at most: who opens it earlier reads what comes later.
            try (FileChannel file = create(half, holdsSecret || Files.exists(target))) {
                content.write(file);
                keepOwnerAndMode(half, target, ownerOnly);
                file.force(true);
            }
            Files.move(half, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException | RuntimeException | Error e) {
            Files.deleteIfExists(half);
            throw e;
        }
        sync(target.getParent());
    }

    /**
     * Other Tamis programs remove files named .tamis-*.tmp that nobody has locked by flock, which Java can't: so the
     * name is another.
     */
    private static String temporaryName() {
        return ".java-tamis-" + Long.toHexString(ThreadLocalRandom.current().nextLong()) + ".tmp";
    }

    /** As the umask says, or for the owner only. */
    private static FileChannel create(Path path, boolean ownerOnly) throws IOException {
        var options = Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        return ownerOnly && hasModes(path.getParent())
                ? FileChannel.open(path, options, PosixFilePermissions.asFileAttribute(OWNER_ONLY))
                : FileChannel.open(path, options);
    }

    private static boolean hasModes(Path path) {
        return Files.getFileAttributeView(path, PosixFileAttributeView.class) != null;
    }

    private static boolean heldSecret(Path target) throws IOException {
        if (!Files.exists(target)) {
            return false;
        }
        try (var in = Files.newInputStream(target)) {
            return Header.decode(in.readNBytes(Header.LENGTH), null).holdsSecret();
        } catch (TamisException e) {
            return false;
        }
    }

    private static void keepOwnerAndMode(Path made, Path target, boolean ownerOnly) throws IOException {
        if (!Files.exists(target) || !hasModes(made)) {
            return;
        }
        PosixFileAttributes old = Files.readAttributes(target, PosixFileAttributes.class);
        var view = Files.getFileAttributeView(made, PosixFileAttributeView.class);
        PosixFileAttributes now = view.readAttributes();
        Set<PosixFilePermission> mode = EnumSet.noneOf(PosixFilePermission.class);
        mode.addAll(ownerOnly ? OWNER_ONLY : old.permissions());
        if (!now.group().equals(old.group())) {
            try {
                view.setGroup(old.group());
            } catch (IOException e) {
                // Another group does not inherit what the old one was allowed.
                mode.removeAll(PosixFilePermissions.fromString("---rwx---"));
            }
        }
        if (!now.owner().equals(old.owner())) {
            try {
                view.setOwner(old.owner());
            } catch (IOException e) {
                // Only root can give a file away: whoever may replace somebody else's file becomes its owner.
            }
        }
        view.setPermissions(mode);
    }

    /** Where the file is, or will be: through symbolic links, also one that leads to nothing yet. */
    private static Path resolved(Path path) throws IOException {
        Path target = path;
        for (int i = 0; i < MOST_LINKS; i++) {
            if (!Files.isSymbolicLink(target)) {
                if (target.getFileName() == null || target.getFileName().toString().isEmpty()) {
                    throw new NoSuchFileException(path.toString(), null, "expected the name of a file");
                }
                return target.toAbsolutePath().getParent().toRealPath().resolve(target.getFileName());
            }
            target = target.resolveSibling(Files.readSymbolicLink(target));
        }
        throw new FileSystemException(path.toString(), null, "too many symbolic links");
    }

    /**
     * Throws if another Tamis program is at work on the file. It holds a lock (flock), which Java can't take; Linux
     * shows who holds one. Without this, the keys that it adds from now on would go to a file without a name.
     */
    private static void checkIdle(Path target) throws IOException {
        Path locks = Path.of("/proc/locks");
        if (!Files.exists(target) || !Files.isReadable(locks)) {
            return;
        }
        Map<String, Object> about = Files.readAttributes(target, "unix:dev,ino");
        long device = (Long) about.get("dev");
        String id = String.format(
                "%02x:%02x:%d", device >> 8 & 0xFFF | device >> 32 & ~0xFFFL, device & 0xFF | device >> 12 & 0xFFF00, (Long) about.get("ino"));
        Pattern held = Pattern.compile("FLOCK .* " + id + " ");
        for (String lock : Files.readAllLines(locks)) {
            if (held.matcher(lock).find()) {
                throw new FileSystemException(target.toString(), null, "another process is writing this filter; wait for it to finish");
            }
        }
    }

    /** Where folders can't be opened, the rename is all there is. */
    private static void sync(Path folder) throws IOException {
        if (hasModes(folder)) {
            try (FileChannel opened = FileChannel.open(folder, StandardOpenOption.READ)) {
                opened.force(true);
            }
        }
    }

    /** Writes all of it. */
    static void put(FileChannel file, byte[] bytes, int length, long at) throws IOException {
        ByteBuffer left = ByteBuffer.wrap(bytes, 0, length);
        while (left.hasRemaining()) {
            file.write(left, at + left.position());
        }
    }
}
