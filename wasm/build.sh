#!/usr/bin/env bash
# Builds onemodel's wheel for Pyodide into wasm/dist/, setting the toolchain up first.
# Nothing is generated in the checkout: the sources are copied into the chroot.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/toolchain/common.sh"

dist=$wasm/dist
work=$chroot/build/onemodel

"$wasm/toolchain.sh"

exec 9>"$cache/lock"
flock 9

# What the wheel is made from. Generated C and compiled modules are left behind.
cd "$checkout"
sources=()
for path in onemodel setup.py pyproject.toml README.md LICENSE MANIFEST.in; do
    [[ ! -e $path ]] || sources+=("$path")
done
mapfile -d '' -t files < <(find "${sources[@]}" -type f \
    ! -name '*.c' ! -name '*.cpp' ! -name '*.o' ! -name '*.so' ! -name '*.pyd' \
    ! -name '*.pyc' -print0 | sort -z)

digest=$({
    sha256sum "${files[@]}" "$wasm/build.sh"
    cat "$chroot/.stamps/pyodide-build"
} | sha256sum)

if [[ -f $dist/.stamp && $(<"$dist/.stamp") == "$digest" ]]; then
    say "wasm: the wheel is up to date"
else
    rm -rf "$work" "$dist"
    mkdir -p "$work" "$dist" "$logs"
    tar -cf - -- "${files[@]}" | tar -xf - -C "$work"

    # -fPIC and -DNDEBUG have to be repeated: setuptools lets CFLAGS replace the
    # interpreter's own flags. Without the second, CPython's assertions are compiled in.
    # -O3 comes after pyodide-build's own -Oz, which would vectorise nothing.
    # Plain SIMD only: relaxed SIMD may round differently from one machine to the next.
    # The linker calls position independent modules experimental, and pyodide-build takes
    # every warning for an error.
    say "wasm: building the wheel ..."
    if ! INSIDE_CFLAGS='-fPIC -DNDEBUG -O3 -msimd128 -ffp-contract=off' \
        INSIDE_LDFLAGS='-Wl,--experimental-pic' \
        "$wasm/toolchain/inside.sh" pyodide build onemodel --outdir onemodel/dist \
        >"$logs/build.log" 2>&1; then
        tail -n 60 "$logs/build.log" >&2
        refuse "the build failed; its last lines stand above." "All of its output: $logs/build.log"
    fi
    cp "$work"/dist/*.whl "$dist/"
    rm -rf "$work"
    printf '%s\n' "$digest" >"$dist/.stamp"
fi

rm -rf "$chroot/build/report"
mkdir -p "$chroot/build/report"
cp "$wasm/toolchain/report.py" "$chroot/build/report.py"
cp "$dist"/*.whl "$wheels"/numpy-*.whl "$chroot/build/report/"
"$wasm/toolchain/inside.sh" python report.py report "$wheel_tag"
