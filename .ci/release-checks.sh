# What .ci/release checks. Sourced by it.

# Environments and profiles of ./test.
. .ci/checks.sh

tools_of_release() {
    environment venv-release || return 1
    PATH=$PWD/target/venv-release/bin:$PATH
}

rust_target() { # rust_target TARGET
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] || rustup target add "$1" ||
        { echo "rustup could not add the target $1; add it by hand"; return 1; }
}

# The command as ./test has compiled it.
command_here() {
    [ -x "$TAMIS" ] || programs_of_tests
}

fail() {
    echo "$*"
    return 1
}

equal() { # equal WHAT EXPECTED GOT
    [ "$2" = "$3" ] || fail "$1: expected \"$2\", got \"$3\""
}

one_version() {
    local version changed
    version=$(.ci/versions.py) || { echo "$version"; return 1; }
    # A version that can be set can be set back, and leaves no trace.
    changed=$(mktemp -d) && git ls-files -z | xargs -0 cp -a --parents -t "$changed" &&
        (cd "$changed" && git init -q && git add -A && .ci/versions.py --set 9.8.7-rc1 && equal "what was set" 9.8.7-rc1 "$(.ci/versions.py)" &&
            .ci/versions.py --set "$version" && git diff --exit-code --stat && sed -i "s/\"version\": \"$version\"/\"version\": \"4.5.6\"/" \
            crates/tamis-wasm/js/package.json && ! .ci/versions.py >/dev/null 2>&1)
    local result=$?
    rm -rf "$changed"
    echo "$version"
    return $result
}

# A registry shows README.md without the repository around it.
registry_readmes() {
    local crates crate readme result=0
    crates=$(.ci/crates) || return 1
    for crate in $crates; do
        readme=crates/$crate/README.md
        grep -qE "^cargo (add|install) $crate( |$)" "$readme" || { fail "$readme: expected cargo add or install $crate"; result=1; }
        grep -qF "https://docs.rs/$crate" "$readme" || { fail "$readme: expected a link to https://docs.rs/$crate"; result=1; }
        grep -qF 'https://github.com/tamis-rs/tamis' "$readme" || { fail "$readme: expected a link to the repository"; result=1; }
        grep -q '^Licensed under MIT or Apache-2.0' "$readme" || { fail "$readme: expected a line on the licence"; result=1; }
        [ "$(grep -c '^```' "$readme")" -ge 2 ] || { fail "$readme: expected an example"; result=1; }
    done
    for readme in crates/*/README.md; do
        ! grep -nE '\]\((\.|[a-z-]+[/.][^:)]*\))' "$readme" || { fail "$readme: links to files that no registry has"; result=1; }
    done
    [ $result = 0 ] && echo "$(wc -w <<<"$crates") crates, a wheel and an npm package"
    return $result
}

commands_named() {
    command_here && python3 -m doctest packaging/check/commands.py && packaging/check/commands.py "$TAMIS"
}

bill_of_materials() {
    tools_of_release && .ci/sbom.py >"$made/tamis.cdx.json" && .ci/sbom.py | cmp - "$made/tamis.cdx.json" &&
        python3 - "$made/tamis.cdx.json" <<'END'
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1]).read()
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if wrong:
    sys.exit(wrong)
print(len(json.loads(text)["components"]), "components")
END
}

install_script() {
    command_here && need shellcheck shellcheck && need curl curl && need wget wget && need busybox busybox &&
        shellcheck packaging/install.sh packaging/compose/survey.sh && packaging/check/install "$TAMIS" "$(.ci/versions.py)"
}

# Formula and recipe of a release that has its archives; without one of them there is neither.
filled_templates() {
    local folder=$made/filled version target
    version=$(.ci/versions.py) && need ruby ruby && tools_of_release || return 1
    rm -rf "$folder" && mkdir -p "$folder"
    for target in x86_64-unknown-linux-musl.tar.gz aarch64-unknown-linux-musl.tar.gz aarch64-apple-darwin.tar.gz; do
        echo "$target" >"$folder/tamis-v$version-$target"
    done
    ! packaging/fill "$folder" "$version" >/dev/null 2>&1 || { fail "filled without the source"; return 1; }
    echo source >"$folder/tamis-v$version-source.tar.gz"
    packaging/fill "$folder" "$version" && (cd "$folder" && sha256sum --quiet --check SHA256SUMS) && ruby -c "$folder/tamis.rb" &&
        ! grep -n '@[A-Z]' "$folder/tamis.rb" "$folder/recipe.yaml" || return 1
    # Each checksum is that of the file in the line before it.
    paste -d ' ' <(grep -h '^ *url' "$folder"/{tamis.rb,recipe.yaml}) <(grep -h '^ *sha256' "$folder"/{tamis.rb,recipe.yaml}) |
        sed "s/\${{ version }}/$version/" | sed -E 's|.*/([^/"]*)".*"([0-9a-f]{64})".*|\2  \1|' >"$folder/pairs"
    equal "pairs of url and checksum" 4 "$(wc -l <"$folder/pairs")" && (cd "$folder" && sha256sum --quiet --check pairs) &&
        python3 - "$folder/recipe.yaml" "$version" <<'END'
import sys
from rattler_build import Stage0Recipe
recipe = Stage0Recipe.from_file(sys.argv[1])
variants = recipe.render()
assert variants, "no variant"
for variant in variants:
    package = variant.recipe.package
    assert (package.name, str(package.version)) == ("tamis", sys.argv[2]), package
print("the recipe renders,", len(variants), "variant")
END
}

systemd_units() {
    local units=$made/units unit name exposure
    need systemd-analyze systemd && rm -rf "$units" && mkdir -p "$units" || return 1
    # What they start must exist, so it is this machine's; an instance stands for its template.
    for unit in packaging/systemd/*.service packaging/systemd/*.timer; do
        name=${unit##*/}
        sed "s|/usr/bin/tamis|$(command -v true)|" "$unit" >"$units/${name/@./@seen.}"
    done
    systemd-analyze verify --man=no "$units"/*.service "$units"/*.timer || return 1
    for unit in "$units"/*.service; do
        exposure=$(systemd-analyze security --offline=true --no-pager --threshold=20 "$unit" | tail -n 1) ||
            { fail "${unit##*/}: $exposure: expected at most 2.0"; return 1; }
        echo "${unit##*/}: ${exposure#*: }"
    done
}

compose_file() {
    local compose=packaging/compose/compose.yaml dockerfile=packaging/image/Dockerfile.valkey path
    tools_of_release && check-jsonschema --builtin-schema vendor.compose-spec $compose &&
        check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml || return 1
    # A file that is mounted and missing becomes an empty folder.
    for path in $(sed -n 's/.*"\(\.\{1,2\}\/[^:"]*\):.*/\1/p' $compose); do
        [ -f "packaging/compose/$path" ] || { fail "$compose mounts $path, which is not there"; return 1; }
    done
    for path in $(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' $dockerfile); do
        [ -e "$path" ] || { fail "$dockerfile copies $path, which is not there"; return 1; }
    done
    # The module is built there as here.
    [ "$(cargo metadata --no-deps --locked --format-version 1 --manifest-path crates/tamis-module/Cargo.toml |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["packages"][0]["targets"][0]["name"])')" = tamis_module ] &&
        grep -q 'release/libtamis_module.so ' $dockerfile || { fail "$dockerfile: expected libtamis_module.so"; return 1; }
    promtool_here && (cd packaging/prometheus && sed 's|rule_files:.*|rule_files: [alerts.yml]|' ../compose/prometheus.yml >"$made/prometheus.yml" &&
        cp alerts.yml "$made" && promtool check config "$made/prometheus.yml")
}

promtool_here() {
    need promtool prometheus
}

monitoring() {
    command_here && promtool_here && redis && environment venv && { [ -e "$TAMIS_MODULE" ] || module; } &&
        packaging/check/metrics "$TAMIS" "$TAMIS_MODULE" "$made/metrics" &&
        python3 -m doctest packaging/check/monitoring.py && packaging/check/monitoring.py "$made"/metrics/*.prom
}

emulator() { # emulator ARCHITECTURE
    [ "$(uname -m)" = "$1" ] || need "qemu-$1-static" qemu-user-static
}

static_program() { # static_program ARCHITECTURE
    local program
    command_here && tools_of_release && emulator "$1" && program=$(.ci/static "$1" "$profile") && packaging/check/static "$program" "$1"
}

image() { # image ARCHITECTURE
    local program
    tools_of_release && emulator "$1" && program=$(.ci/static "$1" "$profile") &&
        packaging/check/image "$program" "$1" "$made/tamis-image-$1.tar" "$(.ci/versions.py)"
}

# Wine's folder of settings. Every program of Rust takes random numbers from bcryptprimitives.dll, which Wine 8 lacks
# (Debian 12): one with that function alone, which asks Wine's own source, stands in for it.
wine_prefix() {
    local system=$WINEPREFIX/drive_c/windows/system32
    [ -d "$system" ] || wineboot --init || return 1
    [ ! -e "$system/bcryptprimitives.dll" ] || return 0
    x86_64-w64-mingw32-gcc -shared -o "$system/bcryptprimitives.dll" packaging/check/bcryptprimitives.c -ladvapi32
}

# Cargo for Windows, by MinGW; what it builds runs under Wine.
windows() { # windows CARGO ARGUMENTS...
    need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 && need wine wine && need /usr/lib/wine/wine64 wine64 &&
        rust_target x86_64-pc-windows-gnu || return 1
    local -x WINEPREFIX=$PWD/target/wine WINEDEBUG=-all CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
    # Neither browser nor fonts are asked for, and nothing is shown.
    local -x WINEDLLOVERRIDES="mscoree=d;mshtml=d;winemenubuilder.exe=d" DISPLAY=
    wine_prefix || return 1
    # Compiled in half the time; what tests spend their time in stays optimised.
    cargo "$1" --locked --target x86_64-pc-windows-gnu --config 'profile.dev.package."*".opt-level=0' \
        --config profile.dev.package.xxhash-rust.opt-level=1 --config profile.dev.package.memchr.opt-level=1 "${@:2}"
}

windows_library() {
    windows_tests crates/tamis -p tamis --lib --tests
}

windows_command() {
    windows_tests crates/tamis-cli -p tamis-cli --features full --bins --test command --test clean
}

# Runs tests, counts them, and lists those that Windows skips, each with its reason.
windows_tests() { # windows_tests FOLDER CARGO OPTIONS...
    local log=$made/windows-${1##*/} result skipped
    mapfile -t skipped < <(packaging/check/only_unix "$1" --skip)
    windows test --no-fail-fast "${@:2}" -- "${skipped[@]}" 2>&1 | tee "$log"
    result=${PIPESTATUS[0]}
    echo "skipped on Windows:"
    packaging/check/only_unix "$1" || result=1
    # Others are skipped everywhere.
    sed -n 's/^test \(.*\) \.\.\. ignored/  \1/p' "$log"
    count() { awk -v "word=$1" '/^test result/ { for (n = 1; n < NF; n++) if ($(n + 1) ~ word) sum += $n } END { print sum + 0 }' "$log"; }
    echo "$(count passed) passed, $(count failed) failed, $(count filtered) skipped here, $(count ignored) everywhere"
    [ "$(count passed)" -gt 0 ] && return "$result"
}

windows_first_command() {
    command_here && windows build --quiet -p tamis-cli --features full &&
        packaging/check/windows "$CARGO_TARGET_DIR/x86_64-pc-windows-gnu/debug/tamis.exe" "$PWD/target/wine"
}

windows_wheel() {
    local dist=$made/windows-wheel
    tools_of_release && need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 && rust_target x86_64-pc-windows-gnu && rm -rf "$dist" || return 1
    (cd crates/tamis-python && maturin build --quiet --locked --profile "$profile" --target x86_64-pc-windows-gnu --out "$dist") &&
        packaging/without_drop_in "$dist"/*.whl && packaging/check/wheel "$dist"/*.whl "*-cp39-abi3-win_amd64.whl"
}

# Zig has the headers of macOS's C library, so C code is compiled for it as well.
macos() {
    tools_of_release && rust_target aarch64-apple-darwin &&
        cargo-zigbuild check --quiet --locked --target aarch64-apple-darwin -p tamis -p tamis-formats -p tamis-redis -p tamis-serve \
            -p tamis-cli -p tamis-python --features tamis-cli/full
}

# As docs.rs does it: with nightly, with all features or those that the crate names, and a cfg of its own.
docs_rs() {
    local crates crate
    crates=$(.ci/crates) && .ci/nightly || return 1
    for crate in $crates; do
        RUSTDOCFLAGS="--cfg docsrs -D warnings" CARGO_TARGET_DIR=$PWD/target/docs-rs \
            cargo +nightly doc --quiet --locked --no-deps --all-features -p "$crate" || { fail "$crate"; return 1; }
    done
    grep -q 'Available on <strong>crate feature' "$PWD"/target/docs-rs/doc/tamis/all.html "$PWD"/target/docs-rs/doc/tamis/*/*.html ||
        fail "tamis: expected that docs.rs says which items need a feature"
}

pypi_packages() {
    python_release && tools_of_release && twine check --strict target/python-release/* && abi3audit --strict target/python-release/*.whl
}

npm_package() {
    need npm npm && wasm_target && crates/tamis-wasm/build "$made/npm" && packaging/check/npm "$made/npm"
}

maven_jar() {
    jdk && packaging/check/maven
}

debian() {
    local -x TAMIS_DEB_PROFILE=dev
    command_here && debian_packages
}
