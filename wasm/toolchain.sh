#!/usr/bin/env bash
# Sets up the WebAssembly toolchain in a cache outside the checkout, from packages of
# Debian, PyPI and npm alone. wasm/README.md tells what is in it and why.
#
# Each step leaves a stamp as its last act, holding a digest of what the step was made
# from. A step whose stamp is missing (it never ended) or differs (its files changed) is
# done again from its start; a run with nothing to do takes well under a second.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/toolchain/common.sh"

# step STAMP SCRIPT INPUT...: run a script of toolchain/ unless its stamp is current.
# A thing's stamp lies inside that thing, so that deleting the one deletes the other.
step() {
    local stamp=$1 script=$2 digest log seconds
    shift 2
    # Comments do not count: NumPy takes minutes, and words change nothing.
    digest=$(cd "$wasm" && grep -v '^ *#' "toolchain/$script.sh" toolchain/pins.sh "$@" | sha256sum)
    if [[ -f $stamp && $(<"$stamp") == "$digest" ]]; then
        return
    fi
    rm -f "$stamp"
    log=$logs/$script.log
    say "wasm: $script ..."
    seconds=$SECONDS
    if ! "$wasm/toolchain/$script.sh" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        refuse "the step '$script' failed; its last lines stand above." "All of its output: $log"
    fi
    mkdir -p "$(dirname "$stamp")"
    printf '%s\n' "$digest" >"$stamp"
    say "wasm: $script took $((SECONDS - seconds)) s"
}

mkdir -p "$logs"
# One at a time: two checkouts may share the cache. The lock also covers what a killed
# run has left running, since those processes inherit it.
exec 9>"$cache/lock"
flock 9

"$wasm/toolchain/host-packages.sh"
step "$node_folder/.stamp" node-packages package.json package-lock.json
step "$chroot/.stamps/chroot" chroot toolchain/inside.sh
step "$chroot/.stamps/pyodide-build" pyodide-build toolchain/cross_build.py package-lock.json \
    toolchain/requirements/pyodide-build.txt toolchain/requirements/build-constraints.txt
step "$wheels/.stamp" numpy toolchain/cross_build.py toolchain/stand-in/mesonpy.py \
    toolchain/requirements/numpy.txt toolchain/requirements/build-constraints.txt
step "$test_wheels/.stamp" test-wheels toolchain/requirements/tests.txt
