#!/usr/bin/env bash
# Builds the source distribution and installs it as a machine without a network does: with the build
# requirements already there, and no index. Then the wheel that it gives is looked at, the canonical
# batches are made, and the tests that came along run against what was installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/pip" install --quiet build twine 'setuptools>=77' 'Cython>=3.2' wheel 'numpy>=2.0' \
    'pytest>=8' 'hypothesis>=6.100'
git ls-files -z | tar -c --null -T - | tar -x --one-top-level="$work/source"
(cd "$work/source" && "$bin/python" -m build --sdist --no-isolation --outdir "$work/dist" >/dev/null)
"$bin/pip" wheel --quiet --no-index --no-build-isolation --no-deps --wheel-dir "$work/dist" \
    "$work"/dist/*.tar.gz
"$bin/twine" check --strict "$work"/dist/*
"$bin/pip" install --quiet --no-index --no-deps "$work"/dist/*.whl
tar -x -f "$work"/dist/*.tar.gz -C "$work"
cd "$work"/onemodel-*/
rm -r onemodel
"$bin/onemodel" verify | tail -n 1
"$bin/python" -P -m pytest -q -p no:cacheprovider tests/test_golden.py tests/test_collate.py \
    tests/test_native_lane.py
