"""A benchmark's ratio is the median of its rounds' own ratios, to the line that its column names.

Nothing here is timed.
"""

import io
import zipfile
from contextlib import redirect_stdout
from pathlib import Path

import pytest

harness = pytest.importorskip("benchmarks.harness")
report = pytest.importorskip("benchmarks.report")

Contender, Result, Table = harness.Contender, harness.Result, report.Table


def result(name, group, threads, *figures, baseline=""):
    return Result(name, group, threads, baseline, list(figures))


def test_a_ratio_is_the_median_of_each_rounds_ratio():
    mine = result("onemodel", "onemodel", 0, 10.0, 40.0, 90.0)
    other = result("C", "ceiling", 1, 10.0, 20.0, 30.0)
    assert mine.ratio(other) == 2.0


def test_a_line_is_divided_by_the_fastest_loop_of_its_threads_and_baseline():
    mine = result("onemodel", "onemodel", 2, 6.0, baseline="passes")
    loops = [
        result("slow", "ceiling", 2, 3.0, baseline="passes"),
        result("fast", "ceiling", 2, 12.0, baseline="passes"),
        result("one thread", "ceiling", 1, 24.0, baseline="passes"),
        result("other data", "ceiling", 2, 24.0, baseline="endless"),
        result("hot", "one buffer", 2, 24.0, baseline="passes"),
    ]
    assert Table("t", "T", [*loops, mine]).ratios(mine) == {"of C": 0.5}


def test_no_workers_count_as_one_thread():
    mine = result("onemodel", "onemodel", 0, 6.0)
    loop = result("C", "ceiling", 1, 12.0)
    assert report.ceiling([loop, mine], mine) is loop


def test_workers_are_divided_by_the_same_line_without():
    lines = [
        result("a", "onemodel", 0, 2.0),
        result("a", "onemodel", 1, 3.0),
        result("b", "onemodel", 1, 8.0),
    ]
    assert [report.no_workers(lines, each) for each in lines] == [None, lines[0], None]


def test_auto_is_divided_by_the_best_fixed_number_and_never_by_itself():
    lines = [
        result("a", "onemodel", 0, 2.0, 2.0),
        result("a", "onemodel", 4, 4.0, 5.0),
        result("a", "onemodel", "auto", 8.0, 8.0),
        result("b", "onemodel", 1, 90.0, 90.0),
    ]
    assert report.best_fixed(lines, lines[2]) is lines[1]
    assert report.best_fixed(lines, lines[0]) is None


def test_cells_leave_out_skipped_lines_and_columns_without_a_value():
    skipped = result("gone", "peer", 0)
    skipped.skipped = "not installed"
    line = result("a", "onemodel", "auto", 0.5)
    line.also["step"] = [0.002]
    table = Table("t", "T", [skipped, line], unit="share", units={"step": "time"})
    assert report.rows(table) == [
        ["", "threads", "share", "±", "step"],
        ["a", "auto", "50.0%", "", "2 ms"],
    ]


def test_rounds_time_each_contender_in_turn_and_keep_what_else_it_says():
    order = []

    def start(name):
        def measure(seconds):
            order.append(name)
            return seconds

        return lambda: measure

    def broken():
        raise ValueError("no  such\ndevice")

    contenders = [
        Contender("a", "onemodel", start("a"), also={"n": lambda: 7.0}),
        Contender("b", "peer", start("b")),
        Contender("c", "peer", broken),
    ]
    results = harness.compare(contenders, rounds=3, seconds=0.5)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [each.figures for each in results] == [[0.5] * 3, [0.5] * 3, []]
    assert results[0].also == {"n": [7.0] * 3}
    assert results[2].skipped == "ValueError: no such device"


def test_passes_begin_with_closed_workers():
    class Loader:
        passes = closed = 0

        def __iter__(self):
            self.passes += 1
            return iter(range(4))

        def close(self):
            self.closed += 1

    loader, taken = Loader(), []
    measure = harness.passes(loader, taken.append, warm=2)
    assert measure(0.0) > 0
    assert (loader.passes, loader.closed, taken) == (3, 1, [0, 1, 2, 3] * 3)


def test_a_row_slower_than_the_limit_is_marked():
    against = pytest.importorskip("benchmarks.against")
    found = [
        against.Row("equal", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        against.Row("slower", [0.9, 1.8, 4.0], [1.0, 2.0, 4.0]),
        against.Row("missing", skipped="no such name"),
    ]
    written = io.StringIO()
    with redirect_stdout(written):
        assert against.show(found, 0.97) == 1
    assert [line.split()[-1] for line in written.getvalue().splitlines()[1:]] == [
        "1.00-1.00",
        "slower",
        "name",
    ]


@pytest.mark.parametrize(
    ("size", "compression", "problems"),
    [
        (690_000, zipfile.ZIP_STORED, 0),
        (700_000, zipfile.ZIP_STORED, 1),
        (7_000_000, zipfile.ZIP_DEFLATED, 0),
    ],
)
def test_the_wheel_for_the_browser_has_a_limit_compressed(tmp_path, size, compression, problems):
    path = Path(__file__).parents[1] / "wasm" / "toolchain" / "report.py"
    if not path.is_file():
        pytest.skip("only in a checkout")
    names = {"__name__": "wheel_report"}
    exec(compile(path.read_text(encoding="utf-8"), path.name, "exec"), names)
    wheel = tmp_path / "onemodel-1-cp314-tag.whl"
    with zipfile.ZipFile(wheel, "w", compression) as archive:
        archive.writestr("onemodel/a.so", bytes(size))
    with redirect_stdout(io.StringIO()):
        assert len(names["report"](wheel, "tag")) == problems
