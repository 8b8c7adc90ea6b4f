# What ./test compiles, each once and for all who use it. Sourced by it.

# What is compiled once, and not debugged, needs neither.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
# An extension module takes Python's functions from whoever loads it.
export PYO3_BUILD_EXTENSION_MODULE=1
# Every workspace is compiled there, so that what several of them need is compiled once.
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
# A linker that takes half the time, where there is one.
if command -v mold >/dev/null; then
    host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
    export "CARGO_TARGET_${host}_RUSTFLAGS=-Clink-arg=-fuse-ld=mold"
fi

# The workspace, and of the command everything, not only what its small build has. One set of features, and one compiler
# (`linted`, below): each other one would compile the library again.
everything="--workspace --features tamis-cli/full"

# The command, and what tests other than Rust's load.
export TAMIS=$CARGO_TARGET_DIR/debug/tamis TAMIS_CAPI=$CARGO_TARGET_DIR/debug

# Clippy's compiler warns, and compiles as the other does: what is tested is linted in passing, which saves another look
# at all that it depends on.
linted() { # linted COMMAND...
    RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver "$@"
}

# All test programs, and with them the command and the extensions: at once, because what only tests depend on has other
# features, and half of the workspace would be compiled again without them.
programs_of_tests() {
    linted cargo build --quiet $everything --lib --bins --tests --examples
}

# Cargo repeats what was warned of in what is compiled already.
lint() {
    without_warning programs_of_tests
}

without_warning() { # without_warning COMMAND...
    local said
    said=$("$@" 2>&1) && [ -z "$said" ] || { echo "$said"; return 1; }
}

# Files that readers in every language must refuse. The library's own tests write them, once a run, for whoever comes first.
corrupt_files() {
    (
        flock 9
        [ -e "$run/corrupt" ] ||
            { rm -rf "$TAMIS_CORRUPT_FILES" && linted cargo test --quiet $everything --test files corrupt && : >"$run/corrupt"; }
    ) 9>"$run/corrupt.lock"
}
export TAMIS_CORRUPT_FILES=$PWD/target/corrupt

# The Python package as users get it: a wheel, in an environment that has no Rust. It is put around the extension
# that the workspace has compiled: maturin would compile all that it depends on once more, with fewer features.
python_package() {
    local dist=$PWD/target/python-dist tree=$PWD/target/wheel-tree tools=$PWD/target/venv/bin tag
    environment venv &&
        rm -rf "$tree" "$dist" && mkdir -p "$tree" "$dist" target/no-rust &&
        cp -r crates/tamis-python/python/* "$tree" &&
        cp "$CARGO_TARGET_DIR/debug/lib_tamis.so" "$tree/tamis/_tamis.abi3.so" &&
        (cd crates/tamis-python && "$tools/maturin" pep517 write-dist-info --metadata-directory "$tree") >/dev/null 2>&1 &&
        tag=$(sed -n 's/^Tag: //p' "$tree"/*.dist-info/WHEEL) &&
        (cd "$tree" && find . -type f -printf '%P,,\n' >"$dist/RECORD" && mv "$dist/RECORD" ./*.dist-info &&
            python3 -m zipfile -c "$dist/$(basename ./*.dist-info .dist-info)-$tag.whl" ./*) || return 1
    printf '#!/bin/sh\necho "$0: there is no Rust here" >&2\nexit 127\n' | tee target/no-rust/cargo >target/no-rust/rustc
    chmod +x target/no-rust/*
    wheel_into venv
}

wheel_into() { # wheel_into ENVIRONMENT
    environment "$1" && PATH=$PWD/target/no-rust:$PATH flock "target/$1/installed.txt" "target/$1/bin/pip" install --quiet \
        --disable-pip-version-check --force-reinstall --no-deps target/python-dist/*.whl
}

# What PyPI would get: the source package, and a wheel made of it outside of this tree. Not optimised, and for this Linux:
# those that are published are built by a workflow, where every Linux since 2014 can load them.
python_release_packages() {
    local dist=$PWD/target/python-release maturin=$PWD/target/venv-all/bin/maturin elsewhere made name
    local options=(--profile dev --strip)
    for name in '"*"' tamis tamis-python; do options+=(--config "profile.dev.package.$name.opt-level=0"); done
    environment venv-all && rm -rf "$dist" && elsewhere=$(mktemp -d) || return 1
    # In a target of its own: files of a source package are all of one time, so cargo would take the last one's crates.
    "$maturin" sdist --manifest-path crates/tamis-python/Cargo.toml --out "$dist" &&
        tar -xzf "$dist"/*.tar.gz -C "$elsewhere" --strip-components 1 &&
        (cd "$elsewhere" && CARGO_TARGET_DIR=$elsewhere/target "$maturin" build --quiet "${options[@]}" --out "$dist")
    made=$?
    rm -rf "$elsewhere"
    return $made
}

# The module, and a client of its own. Not optimised as for users: sums that overflow are noticed.
export TAMIS_MODULE=$CARGO_TARGET_DIR/debug/libtamis_module.so
module() {
    local manifest=crates/tamis-module/Cargo.toml
    # Its tests are of the filters alone: the server's functions need a server.
    clang_library && cargo fmt --manifest-path $manifest -- --check &&
        without_warning linted cargo test --quiet --manifest-path $manifest --no-default-features --features plain-heap --no-run &&
        linted cargo test --quiet --manifest-path $manifest --no-default-features --features plain-heap &&
        without_warning linted cargo build --quiet --manifest-path $manifest
}

sqlite_extension() {
    local manifest=crates/tamis-sqlite/Cargo.toml
    cargo fmt --manifest-path $manifest -- --check && without_warning linted cargo build --quiet --manifest-path $manifest
}

# The library without files, for a target that has none. What the small command lacks is in `first_command`.
fewer_features() {
    wasm_target && without_warning cargo check --quiet -p tamis --no-default-features --target wasm32-unknown-unknown
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet $everything --no-deps
}
