"""Promise: the table of platforms is made as docs/platforms.md says, and a difference fails it."""

import importlib
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools" / "platforms"

pytestmark = pytest.mark.skipif(not TOOLS.is_dir(), reason="the source tree is not here")

MACHINE = {
    "compiler": "GCC: (Debian 12.2.0-14) 12.2.0", "machine": "s390x", "pointer_bits": 64,
    "byte_order": "big", "python": "CPython 3.13.5", "numpy": "2.2.4", "vectors": "baseline",
}  # fmt: skip
FOUND = {"machine": MACHINE, "same": 119, "total": 120}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    yield importlib.import_module
    for name in ("catalog", "check", "disassembly", "report"):
        sys.modules.pop(name, None)


def test_a_row_names_all_that_made_the_bytes(tool):
    report = tool("report")
    row = report.Row("s390x", FOUND, ("-O2",), tests="5 passed", tables=True)
    assert report.shown([row], heading=False) == (
        "| s390x | s390x, 64 bit, big-endian | GCC 12.2.0 -O2 | 3.13.5 | 2.2.4 | baseline | "
        "119 of 120 | 5 passed | same |"
    )
    skipped = report.shown([report.Row("armhf", skipped="no compiler")], heading=False)
    assert skipped.startswith("| armhf | skipped: no compiler |")
    assert skipped.count("|") == len(report.HEADING) + 1


def test_the_page_keeps_what_stands_around_the_table(tool, tmp_path):
    report = tool("report")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    report.write_page(page, [report.Row("arm64", FOUND)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| arm64 |" in text
    assert report.BEGIN in (ROOT / "docs/platforms.md").read_text(encoding="utf-8")


def test_ci_has_the_control_and_the_other_byte_order(tool):
    catalog = tool("catalog")
    assert set(catalog.CI) <= set(catalog.PLATFORMS)
    assert {"control", "s390x"} <= set(catalog.CI)
    control = catalog.PLATFORMS["control"]
    assert control.must_differ
    assert "-ffp-contract=fast" in control.flags


@pytest.mark.parametrize(
    ("same", "tests_pass", "tables", "good"),
    [
        (120, True, True, True),
        (119, True, True, False),
        (120, False, True, False),
        (120, True, False, False),
    ],
)
def test_whatever_differs_fails_the_row(
    tool, monkeypatch, tmp_path, same, tests_pass, tables, good
):
    check, catalog = tool("check"), tool("catalog")

    class Stand:
        def __init__(self, wanted, source, work):
            self.wanted, self.package = wanted, work

        def verify(self):
            return {**FOUND, "same": same}

        def test(self, tests):
            return tests_pass, "5 passed"

        def exchange_tables(self, ours, work):
            return tables

    monkeypatch.setattr(check, "Built", Stand)
    wanted = catalog.PLATFORMS["s390x"]
    row = check.check(wanted, tmp_path, tmp_path, tmp_path, ["tests"])
    assert row.good == good
    control = check.check(catalog.PLATFORMS["control"], tmp_path, tmp_path, tmp_path, [])
    assert control.good == (same != 120)


def test_what_a_machine_cannot_get_is_named_and_no_failure(tool, monkeypatch, tmp_path):
    check, catalog = tool("check"), tool("catalog")

    def unavailable(*_):
        raise check.UnavailableError("needs root")

    monkeypatch.setattr(check, "Built", unavailable)
    row = check.check(catalog.PLATFORMS["arm64"], tmp_path, tmp_path, tmp_path, [])
    assert row.good
    assert row.skipped == "needs root"


def test_32_bit_x86_gets_sse_whoever_compiles_for_it(monkeypatch):
    pytest.importorskip("Cython")
    import setuptools

    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.setattr("Cython.Build.cythonize", lambda *_, **__: [])
    monkeypatch.chdir(ROOT)
    flags = runpy.run_path("setup.py")["compile_flags"]
    if sys.platform != "win32":
        assert {"-msse2", "-mfpmath=sse"} <= set(flags("i686", 32))
        assert "-mfpmath=sse" not in flags("x86_64", 64)
        assert "-ffp-contract=off" in flags("aarch64", 64)
