#!/usr/bin/env bash
# root.sh ARCHITECTURE SUITE ROOT: unpacks a Debian root of another architecture into ROOT: Python,
# NumPy, their headers, pytest and hypothesis. No second stage, mount or chroot: packages are only
# unpacked, and an emulator runs the interpreter from there (emulated.sh).
#
# Needs root and debootstrap.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../debian_mirror.sh"
architecture=$1 suite=$2 root=$3

packages=(python3 python3-dev python3-numpy python3-pytest python3-hypothesis python3-tqdm python3-pil)
# what these depend on is not resolved without a second stage
packages+=(python3-sortedcontainers python3-attr python3-iniconfig python3-pluggy python3-packaging
    python3-pygments python3-typing-extensions libpython3-dev libpython3-stdlib)

mirror=$(debian_mirror)
rm -rf --one-file-system "$root"
mkdir -p "$root"
include=$(IFS=,; printf '%s' "${packages[*]}")
# the script of sid serves every release, also those that an older debootstrap does not know
debootstrap --foreign --arch="$architecture" --variant=minbase --include="$include" \
    "$suite" "$root" "$mirror" /usr/share/debootstrap/scripts/sid
for package in "$root"/var/cache/apt/archives/*.deb; do
    dpkg -x "$package" "$root"
done
rm -f "$root"/var/cache/apt/archives/*.deb

# What Debian's alternatives would lead to, which the second stage sets up.
for library in "$root"/usr/lib/*/blas/libblas.so.3 "$root"/usr/lib/*/lapack/liblapack.so.3; do
    folder=$(dirname "$library")
    ln -sf "$(basename "$folder")/$(basename "$library")" "$(dirname "$folder")/"
done
touch "$root/.whole"
