#!/usr/bin/env bash
# Makes the chroot: the Debian release that packages Emscripten and the right Python.
#
# A machine's own Debian is usually older, and Emscripten's own installer downloads
# compilers from its makers' servers. A chroot of a newer Debian needs neither.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(( $(id -u) == 0 )) || refuse "making a chroot needs root." "Run this as root. $other_way"
command -v apt-get >/dev/null || refuse \
    "making a chroot needs Debian's packages, and this machine has no apt-get." \
    "Use Debian 12 or 13. $other_way"

. "$wasm/../tools/debian_mirror.sh"
mirror=${ONEMODEL_WASM_MIRROR:-$(debian_mirror)} || true
[[ -n $mirror ]] || refuse "apt's sources on this machine name no Debian mirror." \
    "Set ONEMODEL_WASM_MIRROR to the address of one, and try again."

# Nothing is ever mounted here outside a private mount namespace (see inside.sh), so
# removing a half-made chroot cannot reach the machine's /proc. --one-file-system
# keeps that true if somebody mounts something by hand.
rm -rf --one-file-system "$chroot"
mkdir -p "$chroot"

python=python${python_version%.*}

# debootstrap mounts /proc itself; the namespace takes that away when it ends.
unshare --mount --propagation private -- debootstrap --variant=minbase \
    --include=ca-certificates,$python-venv,$python-dev,make \
    "$debian_release" "$chroot" "$mirror" "$debootstrap_script"

# The chroot fetches packages as the machine does: through its proxy, and accepting a
# frozen mirror's expired index where the machine accepts it.
apt-config dump Acquire |
    sed -n -E '/^Acquire::(https?::|Check-Valid-Until|Check-Date)/p' \
    >"$chroot/etc/apt/apt.conf.d/50machine"

"$wasm/toolchain/inside.sh" sh -c '
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends emscripten
    apt-get clean
    emcc --version | head -n 1'
