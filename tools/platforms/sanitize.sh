#!/usr/bin/env bash
# sanitize.sh address|thread [PYTEST ARGUMENT...]: the extensions with a sanitizer of gcc, and the
# tests under it. Any report fails, whatever the tests say.
# sanitize.sh address|thread --planted: the same with faults put into a copy of the sources, each of
# which must be reported: the proof that the other runs see something.
#
# address: AddressSanitizer and UndefinedBehaviorSanitizer, by default over the whole suite.
# thread: ThreadSanitizer, by default over the tests of the engine. An ordinary CPython's GIL is a
# mutex that it sees, so what the GIL guards is in order; CPython and NumPy are not looked into.
#
# Needs gcc with the sanitizers' libraries, and Cython, setuptools, NumPy, pytest and hypothesis in
# the Python that is called python (or PYTHON).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
kind=$1
shift
planted=
[[ ${1:-} != --planted ]] || { planted=yes; shift; }
python=$(command -v "${PYTHON:-python}")

case $kind in
    address)
        # an undefined operation ends the process: the two together write its report to standard
        # error alone, which --capture=sys leaves open
        flags=(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
        libraries=(libasan.so libubsan.so)
        (( $# )) || set -- tests
        ;;
    thread)
        flags=(-fsanitize=thread)
        libraries=(libtsan.so)
        (( $# )) || set -- tests/test_engine_ring.py tests/test_loader_passes.py \
            tests/test_loader_closing.py tests/test_loader_delivery.py tests/test_plans_ahead.py \
            tests/test_native_lane.py tests/test_memory.py
        ;;
    *) echo "the sanitizer must be address or thread, got $kind" >&2; exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/source" "$work/reports"
(cd "$checkout" && git ls-files -z | tar -c --null -T - ) | tar -x -C "$work/source"

# plant FILE TEXT FAULT: put a fault into the copy, where the text is. It must be there once.
plant() {
    "$python" -c 'import sys
path, text, fault = sys.argv[1:]
before, found, after = open(path).read().partition(text)
assert found and text not in after, f"{path} must have once: {text}"
open(path, "w").write(before + fault + after)' "$work/source/onemodel/$1" "$2" "$3"
}
if [[ -n $planted && $kind == address ]]; then
    # writing behind an array; reading a float that is not aligned
    plant _simd/permutation.h 'memcpy(indices, block, (size_t)size' \
        'memcpy(indices, block, (size_t)(size + 1)'
    plant _samplers/draws.pyx '<const double *>shares.data' \
        '<const double *>(<char *>shares.data + 4)'
    expected=('AddressSanitizer: heap-buffer-overflow' 'load of misaligned address')
    set -- tests/test_permutation.py 'tests/test_samplers.py -k mixing'
elif [[ -n $planted ]]; then
    # counters read while workers write them
    counters='cdef Counters counters = self.steps.counters'
    plant _engine/ring.pyx \
        $'lock(&self.steps.lock)\n        '"$counters"$'\n        unlock(&self.steps.lock)' "$counters"
    expected=('ThreadSanitizer: data race')
    set -- tests/test_loader_delivery.py
fi

read -r include suffix machine < <("$python" -c '
import platform, sysconfig as s
print(s.get_path("include"), s.get_config_var("EXT_SUFFIX"), platform.machine())')
options=()
for flag in -O1 -g -fno-omit-frame-pointer "${flags[@]}"; do options+=("--flag=$flag"); done
"$python" "$here/cross_build.py" "$work/source" "$work/package" --compiler "${CC:-gcc}" \
    --include "$include" --suffix "$suffix" --machine "$machine" --bits 64 "${options[@]}" \
    >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log"; exit 1; }

preload=
for library in "${libraries[@]}"; do
    preload+=${preload:+:}$(gcc -print-file-name="$library")
done
log=$work/reports/report
export PYTHONPATH=$work/package PYTHONMALLOC=malloc ONEMODEL_TEST_LIMIT=1500
# leaks are CPython's own: it frees little at its end
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1:log_path=$log
export UBSAN_OPTIONS=print_stacktrace=1:log_path=$log
export TSAN_OPTIONS=report_signal_unsafe=0:history_size=4:exitcode=0:die_after_fork=0:ignore_noninstrumented_modules=1:log_path=$log
runner=()
# runtimes of before gcc 14 know no address space as random as today's kernels make it
[[ $kind != thread ]] || runner=(setarch --addr-no-randomize)
run_tests() {
    (cd "$work/package" &&
        LD_PRELOAD=$preload "${runner[@]}" "$python" -m pytest -q -p no:cacheprovider \
            --capture=sys "$@")
}

if [[ -n $planted ]]; then
    # one after another: a report may end the process
    for tests in "$@"; do
        # shellcheck disable=SC2086  # a file and its options
        run_tests -x $tests >>"$work/planted.log" 2>&1 || true
    done
    for report in "${expected[@]}"; do
        grep -qF "$report" "$log"* "$work/planted.log" || {
            tail -n 20 "$work/planted.log"
            echo "a planted fault was not reported: $report" >&2
            exit 1
        }
        echo "a planted fault was reported: $report"
    done
    exit
fi
status=0
run_tests "$@" || status=$?

# other lines say that an allocation was too large, which tests ask for
faults='runtime error|ERROR: AddressSanitizer|WARNING: ThreadSanitizer'
if compgen -G "$log*" >/dev/null && grep -qE "$faults" "$log"*; then
    echo "reports of the sanitizer:"
    { grep -hE "$faults|^SUMMARY" "$log"* | sort | uniq -c | sort -rn | head -n 40; } || true
    grep -hE -A 40 "$faults" "$log"* | head -n 120 || true
    exit 1
fi
exit "$status"
