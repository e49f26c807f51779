#!/usr/bin/env bash
# Runs the suite, and a stress with eight threads, on free-threaded CPython. Debian packages it as
# source only: it is built from there once, into a cache outside of the checkout. The machine's apt
# sources stay as they are.
#
# Needs Debian 12 or 13, gcc, make, pkg-config and the headers of zlib, libffi and openssl. The suite
# must find that importing onemodel has left the GIL off.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=trixie
package=python3.13
cache=${ONEMODEL_CPYTHON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onemodel-cpython}
prefix=$cache/$package-nogil

. tools/debian_mirror.sh

build_python() {
    local work apt mirror source
    work=$(mktemp -d)
    mirror=$(debian_mirror) ||
        { echo "apt's sources on this machine name no Debian mirror" >&2; exit 1; }
    mkdir -p "$work"/{lists/partial,archives/partial,build} "$cache"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
        >"$work/sources.list"
    apt=(apt-get -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=-
        -o "Dir::State::Lists=$work/lists" -o "Dir::Cache::archives=$work/archives"
        -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= -o APT::Sandbox::User=root)
    "${apt[@]}" update
    (cd "$work" && "${apt[@]}" source --download-only "$package")
    tar -x -f "$(find "$work" -maxdepth 1 -name "${package}_*.orig.tar.[gx]z")" -C "$work"
    source=$(find "$work" -maxdepth 1 -type d -name '[Pp]ython*3*' | head -n 1)
    (
        cd "$work/build"
        "$source/configure" --prefix="$prefix" --disable-gil --with-ensurepip=install
        make -j"$(nproc)"
        make install
    ) >"$cache/build.log" 2>&1 || { tail -n 20 "$cache/build.log"; exit 1; }
    rm -rf "$work"
}

[[ -x $prefix/bin/python3 ]] || build_python

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$prefix/bin/python3" -m venv "$work/venv"
bin=$work/venv/bin
# the last hypothesis in pure Python: others have no wheel for this interpreter
"$bin/pip" install --quiet --only-binary :all: 'setuptools>=77' 'Cython>=3.2' 'numpy>=2.1' \
    'pytest>=8' 'hypothesis==6.155.7' 'tqdm>=4.66'
git ls-files -z | tar -c --null -T - | tar -x -C "$work"
cd "$work"
"$bin/python" setup.py --quiet build_ext --inplace
export PYTHONPATH=$work
"$bin/python" -W error -c 'import sys, onemodel; assert not sys._is_gil_enabled()'
"$bin/python" -m pytest -q -p no:cacheprovider "$@"
"$bin/python" tools/stress_threads.py
