#!/usr/bin/env bash
# Installs Pyodide's runtime and Playwright's driver from npm, checked against the
# hashes in package-lock.json. Playwright downloads no browser: the machine's is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rm -rf "$node_folder"
mkdir -p "$node_folder"
cp "$wasm/package.json" "$wasm/package-lock.json" "$node_folder/"
cd "$node_folder"
npm ci --ignore-scripts --no-audit --no-fund
