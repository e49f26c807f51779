#!/usr/bin/env bash
# Installs pyodide-build inside the chroot and lays out the cross-build environment
# that it wants: Pyodide's runtime, CPython's headers and the target's configuration.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rm -rf "$chroot$inner_venv" "$chroot$inner_cross_build" "$chroot/opt/toolchain"
mkdir -p "$chroot/opt/toolchain"
cp -r "$wasm/toolchain/cross_build.py" "$wasm/toolchain/requirements" "$chroot/opt/toolchain/"
cp -rL "$node_folder/node_modules/pyodide" "$chroot/opt/toolchain/pyodide"

"$wasm/toolchain/inside.sh" "python${python_version%.*}" -m venv "$inner_venv"
"$wasm/toolchain/inside.sh" pip install --no-deps \
    --requirement /opt/toolchain/requirements/pyodide-build.txt
"$wasm/toolchain/inside.sh" python /opt/toolchain/cross_build.py \
    --pyodide /opt/toolchain/pyodide --into "$inner_cross_build" \
    --python "$python_version" --abi "$pyodide_abi" --emscripten "$pyodide_emscripten" \
    --constraints /opt/toolchain/requirements/build-constraints.txt

# A first compilation, which also fills Emscripten's own cache of generated files.
"$wasm/toolchain/inside.sh" sh -c '
    echo "int answer(void) { return 42; }" >warm.c
    emcc -O3 -fPIC -c warm.c -o warm.o
    emcc -s SIDE_MODULE=1 warm.o -o warm.so
    rm warm.c warm.o warm.so'
