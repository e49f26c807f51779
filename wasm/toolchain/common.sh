# What all the toolchain's scripts share: where things lie, and how they speak.
# Sourced, never run. Scripts that source it run under `set -euo pipefail`.
# shellcheck disable=SC2034

wasm=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
checkout=$(dirname "$wasm")

# shellcheck source=pins.sh
. "$wasm/toolchain/pins.sh"

# Everything big or slow to make lives here, outside the checkout, and serves every
# checkout on the machine. Deleting the folder is always safe: it is made again.
cache=${ONEMODEL_WASM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onemodel-wasm}

chroot=$cache/chroot                       # Debian with Emscripten
node_folder=$cache/node                    # node_modules with pyodide and playwright-core
wheels=$cache/wheels                       # NumPy for Pyodide
test_wheels=$cache/test-wheels             # pytest and hypothesis, pure Python
logs=$cache/logs

# Paths as seen from inside the chroot.
inner_venv=/opt/pyodide-build
inner_cross_build=/opt/cross-build

say() { printf '%s\n' "$*"; }

# refuse WHAT REMEDY: stop, naming what cannot be had and what to do about it.
refuse() {
    printf 'wasm: %s\n      %s\n' "$1" "$2" >&2
    exit 1
}

other_way='Or build with open internet: see "The ordinary way" in wasm/README.md.'
