#!/usr/bin/env bash
# free-threaded.sh [PYTEST ARGUMENT...]: the suite, and a stress with eight threads, on free-threaded
# CPython.
# free-threaded.sh --thread-sanitizer [PYTEST ARGUMENT...]: the tests of the engine and the stress,
# with ThreadSanitizer in CPython and in the extensions, so that it sees who shares what. Any report
# fails that the suppressions of CPython's own repository do not name.
#
# Debian packages this interpreter as source only: it is built from there once, into a cache outside
# of the checkout. The machine's apt sources stay as they are.
#
# Needs Debian 12 or 13, gcc, make, pkg-config and the headers of zlib, libffi and openssl. The suite
# must find that importing onemodel has left the GIL off.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=trixie
package=python3.13
cache=${ONEMODEL_CPYTHON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onemodel-cpython}
prefix=$cache/$package-nogil
watched=$cache/$package-nogil-thread-sanitizer

. tools/debian_mirror.sh

# The sources are kept beside what is built of them.
fetch_source() {
    local work apt mirror
    [[ ! -d $cache/source ]] || return 0
    work=$(mktemp -d)
    mirror=$(debian_mirror) ||
        { echo "apt's sources on this machine name no Debian mirror" >&2; exit 1; }
    mkdir -p "$work"/{lists/partial,archives/partial} "$cache"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
        >"$work/sources.list"
    apt=(apt-get -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=-
        -o "Dir::State::Lists=$work/lists" -o "Dir::Cache::archives=$work/archives"
        -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= -o APT::Sandbox::User=root)
    "${apt[@]}" update
    (cd "$work" && "${apt[@]}" source --download-only "$package")
    mkdir "$work/source"
    tar -x --strip-components 1 -C "$work/source" \
        -f "$(find "$work" -maxdepth 1 -name "${package}_*.orig.tar.[gx]z")"
    mv "$work/source" "$cache/source"
    rm -rf "$work"
}

# build_python PREFIX INSTALL OPTION...: make and install CPython; INSTALL is one more argument of
# make there, or empty
build_python() {
    local place=$1 more=$2 build
    shift 2
    [[ ! -x $place/bin/python3 ]] || return 0
    fetch_source
    build=$(mktemp -d)
    (
        cd "$build"
        "$cache/source/configure" --prefix="$place" --disable-gil "$@"
        make -j"$(nproc)"
        make install ${more:+"$more"}
    ) >"$cache/build.log" 2>&1 || { tail -n 20 "$cache/build.log"; exit 1; }
    rm -rf "$build"
}

watch=
[[ ${1:-} != --thread-sanitizer ]] || { watch=yes; shift; }

build_python "$prefix" "" --with-ensurepip=install
if [[ -n $watch ]]; then
    # runtimes of before gcc 14 know no address space as random as today's kernels make it
    (( 0x$(</proc/self/personality) & 0x40000 )) ||
        exec setarch --addr-no-randomize tools/free-threaded.sh --thread-sanitizer "$@"
    # the library's modules stay uncompiled: under the sanitizer that takes minutes
    TSAN_OPTIONS=report_bugs=0 build_python "$watched" PYTHON_FOR_BUILD=true \
        --with-thread-sanitizer --without-ensurepip
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$prefix/bin/python3" -m venv "$work/venv"
bin=$work/venv/bin
# the last hypothesis in pure Python: others have no wheel for this interpreter
"$bin/pip" install --quiet --only-binary :all: 'setuptools>=77' 'Cython>=3.2' 'numpy>=2.1' \
    'pytest>=8' 'hypothesis==6.155.7' 'tqdm>=4.66'
git ls-files -z | tar -c --null -T - | tar -x -C "$work"
cd "$work"
export PYTHONPATH=$work
if [[ -z $watch ]]; then
    "$bin/python" setup.py --quiet build_ext --inplace
    "$bin/python" -W error -c 'import sys, onemodel; assert not sys._is_gil_enabled()'
    "$bin/python" -m pytest -q -p no:cacheprovider "$@"
    "$bin/python" tools/stress_threads.py
    exit
fi

CFLAGS="-fsanitize=thread -g" "$bin/python" setup.py --quiet build_ext --inplace
PYTHONPATH+=:$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
log=$work/reports/report
mkdir "${log%/*}"
export ONEMODEL_TEST_LIMIT=1500
TSAN_OPTIONS=suppressions=$cache/source/Tools/tsan/suppressions_free_threading.txt
# NumPy alone is not instrumented
TSAN_OPTIONS+=:report_signal_unsafe=0:history_size=4:exitcode=0:die_after_fork=0
export TSAN_OPTIONS+=:ignore_noninstrumented_modules=1:log_path=$log
python=$watched/bin/python3
"$python" -W error -c 'import sys, onemodel; assert not sys._is_gil_enabled()'
(( $# )) || set -- tests/test_engine_ring.py tests/test_loader_passes.py \
    tests/test_loader_closing.py tests/test_loader_delivery.py tests/test_plans_ahead.py \
    tests/test_native_lane.py tests/test_memory.py
status=0
"$python" -m pytest -q -p no:cacheprovider "$@" || status=$?
"$python" tools/stress_threads.py 1 || status=$?
if compgen -G "$log*" >/dev/null; then
    echo "reports of ThreadSanitizer:"
    { grep -h "^SUMMARY" "$log"* | sort | uniq -c | sort -rn | head -n 40; } || true
    head -n 120 "$(ls "$log"* | head -n 1)"
    exit 1
fi
exit "$status"
