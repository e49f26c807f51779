#!/usr/bin/env bash
# Builds NumPy for Pyodide from its source release: about six minutes on two cores,
# once per machine. PyPI has no such wheel, and Pyodide's own lies on a CDN.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work=$chroot/build/numpy
rm -rf "$work"
mkdir -p "$work"
cp -r "$wasm/toolchain/stand-in" "$wasm/toolchain/requirements" "$work/"

# shellcheck disable=SC2016  # the inner shell expands these
INSIDE_PYTHONPATH=/build/numpy/stand-in "$wasm/toolchain/inside.sh" \
    pip download --dest /build/numpy --no-deps --no-build-isolation --no-binary numpy \
    --require-hashes --requirement /build/numpy/requirements/numpy.txt

# No BLAS: there is none for this target, and NumPy brings its own loops.
# Only what a run needs: no tests, no headers, no static libraries.
INSIDE_CFLAGS='-fPIC -O3 -msimd128' INSIDE_CXXFLAGS='-fPIC -O3 -msimd128' \
INSIDE_LDFLAGS='-Wl,--experimental-pic' \
    "$wasm/toolchain/inside.sh" sh -euc '
        tar -xf "numpy/numpy-'"$numpy_version"'.tar.gz" -C numpy
        cd "numpy/numpy-'"$numpy_version"'"
        cross=$(python -c "import pyodide_build, pathlib
print(pathlib.Path(pyodide_build.__file__).parent / \"tools/emscripten.meson.cross\")")
        pyodide build . --outdir /build/numpy/dist \
            -Csetup-args=--cross-file="$cross" \
            -Csetup-args=-Dallow-noblas=true \
            -Csetup-args=-Dblas=none \
            -Csetup-args=-Dlapack=none \
            -Cinstall-args=--tags=runtime,python-runtime'

rm -rf "$wheels"
mkdir -p "$wheels"
cp "$work"/dist/numpy-*.whl "$wheels/"
rm -rf "$work"
