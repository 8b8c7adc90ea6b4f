#!/bin/sh
# Installs the command `tamis` from a release: the program for this system, and its completions and manual pages.
# An archive whose SHA-256 isn't that of the release's SHA256SUMS is refused, and nothing is installed.
#
#   install.sh [VERSION]      the newest one by default
#
# TAMIS_PREFIX      where to: PREFIX/bin and PREFIX/share; ~/.local by default
# TAMIS_RELEASES    where from: a folder of releases, such as a mirror, each in a folder of its version
set -eu

releases=${TAMIS_RELEASES:-https://github.com/tamis-rs/tamis/releases}
prefix=${TAMIS_PREFIX:-$HOME/.local}
version=${1:-}

fail() {
    echo "tamis: $*" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

target() {
    case $(uname -s) in
    Linux) system=unknown-linux-musl ;;
    Darwin) system=apple-darwin ;;
    *) fail "no program for $(uname -s), only for Linux and macOS; on Windows, use install.ps1" ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "no program for $(uname -m), only for x86_64 and aarch64; cargo install tamis-cli builds one" ;;
    esac
    [ "$machine-$system" != x86_64-apple-darwin ] ||
        fail "no program for Macs with Intel's processors; cargo install tamis-cli builds one"
    echo "$machine-$system"
}

fetch() { # fetch URL FILE
    if has curl; then
        curl --fail --silent --show-error --location --output "$2" "$1"
    elif has wget; then
        wget --quiet --output-document="$2" "$1"
    else
        fail "expected curl or wget to download with, got neither"
    fi || fail "$1 could not be downloaded"
}

sum() { # sum FILE
    if has sha256sum; then
        sha256sum "$1"
    elif has shasum; then
        shasum -a 256 "$1"
    elif has openssl; then
        openssl dgst -sha256 -r "$1"
    else
        fail "expected sha256sum, shasum or openssl to verify the download, got none of them"
    fi | cut -d ' ' -f 1
}

main() {
    target=$(target)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    if [ -z "$version" ]; then
        fetch "$releases/latest/download/VERSION" "$work/VERSION"
        version=$(cat "$work/VERSION")
    fi
    version=${version#v}
    case $version in
    *[!0-9A-Za-z.+-]* | "") fail "expected a version such as 1.2.3, got \"$version\"" ;;
    esac
    name=tamis-v$version-$target
    from=$releases/download/v$version

    fetch "$from/SHA256SUMS" "$work/SHA256SUMS"
    expected=$(sed -n "s|^\([0-9a-f]\{64\}\) [ *]\(\./\)\{0,1\}$name\.tar\.gz\$|\1|p" "$work/SHA256SUMS")
    [ ${#expected} = 64 ] || fail "$from/SHA256SUMS: expected one line for $name.tar.gz; nothing is installed"
    fetch "$from/$name.tar.gz" "$work/archive"
    got=$(sum "$work/archive")
    [ "$got" = "$expected" ] ||
        fail "$name.tar.gz: expected the SHA-256 $expected, got $got; nothing is installed"

    tar -xzf "$work/archive" -C "$work"
    "$work/$name/tamis" --version >/dev/null || fail "$name.tar.gz: its program does not run here; nothing is installed"
    share=$prefix/share
    mkdir -p "$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
        "$share/fish/vendor_completions.d"
    # Under a name of its own first: the old one may be running.
    cp "$work/$name/tamis" "$prefix/bin/.tamis.new"
    chmod 755 "$prefix/bin/.tamis.new"
    mv -f "$prefix/bin/.tamis.new" "$prefix/bin/tamis"
    cp "$work/$name"/man/*.1 "$share/man/man1"
    cp "$work/$name/completions/tamis.bash" "$share/bash-completion/completions/tamis"
    cp "$work/$name/completions/tamis.zsh" "$share/zsh/site-functions/_tamis"
    cp "$work/$name/completions/tamis.fish" "$share/fish/vendor_completions.d/tamis.fish"
    "$prefix/bin/tamis" --version
    case :$PATH: in
    *:$prefix/bin:*) ;;
    *) echo "hint: $prefix/bin is not in PATH" ;;
    esac
}

# As the last line: of a script that is cut off on its way, nothing runs.
main
