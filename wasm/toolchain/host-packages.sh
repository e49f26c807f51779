#!/usr/bin/env bash
# Installs what the toolchain needs on the machine itself: debootstrap for the chroot,
# Node to run Pyodide, and Chromium for the browser test.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=()
command -v debootstrap >/dev/null || packages+=(debootstrap)
command -v chromium >/dev/null || packages+=(chromium)
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)

if (( ${#packages[@]} > 0 )); then
    command -v apt-get >/dev/null || refuse \
        "these are missing, and there is no apt-get to install them: ${packages[*]}" \
        "Install them by hand, or use Debian 12 or 13. $other_way"
    (( $(id -u) == 0 )) || refuse \
        "these are missing, and only root can install them: ${packages[*]}" \
        "Run 'apt-get install ${packages[*]}' as root, then try again as root."
    apt-get update
    DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends \
        "${packages[@]}"
fi

node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 18 ? 0 : 1)' || refuse \
    "Node $(node --version) is too old for Pyodide." "Install Node 18 or newer."
