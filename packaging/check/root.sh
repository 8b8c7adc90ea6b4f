# Programs in an empty root, as nobody. Sourced by static and image.

fail() { echo "$*" >&2; exit 1; }

# Who may not change the root makes a user namespace, in which nobody else exists: there it stays itself. With become=exec,
# the shell becomes the program.
in_root() { # in_root ROOT COMMAND...
    local root=$1
    shift
    if [ "$(id -u)" = 0 ]; then
        ${become:-} env -i /usr/sbin/chroot --userspec=65534:65534 "$root" "$@"
    else
        ${become:-} env -i unshare --user --map-root-user /usr/sbin/chroot "$root" "$@"
    fi
}

# The command that runs a program of another processor in that root: the emulator must be in it.
emulated() { # emulated ROOT ARCHITECTURE
    [ "$(uname -m)" = "$2" ] && return
    cp "$(command -v "qemu-$2-static")" "$1/emulator"
    echo /emulator
}
