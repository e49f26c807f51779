#!/usr/bin/env bash
# Fetches the test runner's wheels from PyPI: pure Python ones, checked by their hashes.
# Newer releases of hypothesis are compiled; the pinned one is the last that is not.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rm -rf "$test_wheels" "$chroot/build/test-wheels"
mkdir -p "$chroot/build/test-wheels"
cp "$wasm/toolchain/requirements/tests.txt" "$chroot/build/test-wheels/"
"$wasm/toolchain/inside.sh" pip download --dest /build/test-wheels/found --no-deps \
    --only-binary :all: --platform any --abi none --implementation py \
    --require-hashes --requirement /build/test-wheels/tests.txt
cp -r "$chroot/build/test-wheels/found" "$test_wheels"
rm -rf "$chroot/build/test-wheels"
