# What ./test installs: Debian's packages, Python's and npm's from lock files, compilers. Sourced by it.

# Debian packages that are not there, installed if we may: one at a time, and with
# lists that are fetched once a run.
need() { # need COMMAND-OR-FILE PACKAGE
    { command -v "$1" || [ -e "$1" ]; } >/dev/null && return
    echo "installing $2 (for $1)"
    local as=()
    [ "$(id -u)" = 0 ] || as=(sudo -n)
    (
        flock 9
        { [ -e "$run/lists" ] || "${as[@]}" apt-get update -qq; } && : >"$run/lists" &&
            DEBIAN_FRONTEND=noninteractive "${as[@]}" apt-get install -y -qq "$2"
    ) 9>"$run/apt" >/dev/null || { echo "could not install $2; install it by hand"; return 1; }
}

# Tests start redis-servers of their own. Debian's package redis-server would
# start one of the system's, too; its program is a link to one of redis-tools.
redis() {
    command -v redis-server >/dev/null && return
    need redis-check-rdb redis-tools && mkdir -p target/redis &&
        ln -sf "$(command -v redis-check-rdb)" target/redis/redis-server
}
PATH=$PATH:$PWD/target/redis

# `tamis compare` loads the system's SQLite.
sqlite() {
    /sbin/ldconfig -p | grep -q 'libsqlite3\.so\.0' || need libsqlite3 libsqlite3-0
}

programs() {
    need cc gcc && need c++ g++ && need python3 python3 && need openssl openssl && need unshare util-linux &&
        need /usr/bin/time time && need rg ripgrep && need zstd zstd && need zsh zsh && need fish fish &&
        need man man-db && redis && sqlite
}

# Environments of lock files, in target: `venv` for ./test; `venv-all` for --all, of Debian's own Python, which can load
# SQLite's extensions; `venv-pybloomfilter`. Each is made anew when a lock file changes.
environment() { # environment NAME
    local venv=target/$1 lock python=python3
    case $1 in
    venv) lock=.ci/python/test.txt ;;
    venv-all) lock=.ci/python/all.txt python=/usr/bin/python3 ;;
    venv-pybloomfilter) lock=.ci/python/pybloomfilter.txt ;;
    esac
    (
        flock 9
        cat .ci/python/*.txt | cmp -s - "$venv/installed.txt" ||
            { need "$python" python3 &&
                { "$python" -m venv --clear "$venv" 2>/dev/null ||
                    { need ensurepip python3-venv && "$python" -m venv --clear "$venv"; }; } &&
                "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --no-deps -r "$lock" &&
                cat .ci/python/*.txt >"$venv/installed.txt"; }
    ) 9>"$run/$1" || { echo "not everything of $lock could be fetched"; return 1; }
}

npm_packages() {
    (
        flock 9
        cmp -s .ci/npm/package-lock.json target/npm/package-lock.json ||
            { need npm npm && mkdir -p target/npm && cp .ci/npm/package.json target/npm &&
                cp .ci/npm/package-lock.json target/npm &&
                npm ci --silent --no-audit --no-fund --ignore-scripts --prefix target/npm; } ||
            { rm -f target/npm/package-lock.json; false; }
    ) 9>"$run/npm" || { echo "not everything of .ci/npm/package-lock.json could be fetched"; return 1; }
}

# Those that a step of `--all` needs.
browser() {
    need chromium chromium && need chromedriver chromium-driver
}

jdk() {
    need javac default-jdk-headless
}

clang_library() {
    compgen -G '/usr/lib/llvm-*/lib/libclang[.-][s0-9]*' >/dev/null || [ "${LIBCLANG_PATH:-}" ] || need /usr/lib/libclang.so libclang-dev
}

wasm_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ] ||
        rustup target add wasm32-unknown-unknown >/dev/null 2>&1 ||
        { echo "rustup could not add the target wasm32-unknown-unknown; add it by hand"; return 1; }
}

# A program of a crate, kept out of the user's own tools. Not optimised: it is built sooner, and does the same work.
tool() { # tool PROGRAM VERSION [INSTALL OPTIONS...]
    local program=$1 version=$2
    shift 2
    PATH=$PWD/target/tools/bin:$PATH
    [[ $("$program" --version 2>/dev/null) == *"$version"* ]] && return
    echo "installing $program $version"
    CARGO_TARGET_DIR=$PWD/target/tools cargo install --debug --quiet --locked --root target/tools "$program@$version" "$@"
}

needed() {
    programs && environment venv
}

needed_by_all() {
    environment venv-all && npm_packages && crates/tamis-redis/tests/servers fetch
}
