#!/usr/bin/env bash
# versions.sh [--verify-only]: every Python from 3.11 on that is here, each with the oldest and the
# newest NumPy that has a wheel for it: a plain install, `onemodel verify`, and the suite.
#
# The extensions are built once for each Python: they do not know NumPy's interface.
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
verify_only=${1:-}
export PIP_DISABLE_PIP_VERSION_CHECK=1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$checkout" && git ls-files -z | tar -c --null -T -) | tar -x --one-top-level="$work/source"

# The first releases of NumPy 2 that have wheels for some Python.
oldest_numpy() {
    local pip=$1 version
    for version in 2.0.0 2.1.0 2.2.0 2.3.0 2.3.2 2.4.0; do
        if "$pip" install --quiet --only-binary :all: "numpy==$version" 2>/dev/null; then
            return
        fi
    done
    echo "no wheel of NumPy 2 for this Python" >&2
    return 1
}

check() {
    local bin=$1 failed=0
    echo "$("$bin/python" --version), NumPy $("$bin/python" -c 'import numpy; print(numpy.__version__)')"
    # away from the source tree: it is the installed package that is looked at
    (cd "$work" && "$bin/onemodel" verify | tail -n 1) || failed=1
    [[ -n $verify_only ]] ||
        (cd "$work/source" && "$bin/python" -P -m pytest -q -p no:cacheprovider tests | tail -n 1) ||
        failed=1
    return "$failed"
}

status=0
shopt -s nullglob
declare -A seen
for python in python3.1{1..4} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-4].*/bin/python; do
    if ! home=$("$python" -c 'import sys, venv, ensurepip; print(sys.base_prefix)' 2>/dev/null); then
        [[ $python == */* ]] && echo "skipped: $python does not run here"
        continue
    fi
    [[ -z ${seen[$home]:-} ]] || continue
    seen[$home]=1
    bin=$work/venv-${#seen[@]}/bin
    "$python" -m venv "${bin%/bin}"
    "$bin/pip" install --quiet "$work/source$([[ -n $verify_only ]] || echo '[test]')"
    check "$bin" || status=1
    oldest_numpy "$bin/pip"
    check "$bin" || status=1
done
(( ${#seen[@]} > 0 )) || { echo "no Python from 3.11 on is here" >&2; exit 1; }
exit "$status"
