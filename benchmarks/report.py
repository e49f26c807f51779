"""Tables on the screen, and JSON, Markdown and a plot in benchmarks/results/."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.ceiling.build import compiler_version
from benchmarks.harness import Result, fastest

RESULTS = Path(__file__).parent / "results"
PEERS = ("onemodel", "numpy", "torch", "torchdata", "grain", "spdl", "numba", "tensorflow")


Reference = Callable[[list[Result], Result], Result | None]
"""Returns the line of a table that a line is divided by, or None."""


def ceiling(results: list[Result], result: Result) -> Result | None:
    """Return the fastest C loop with as many threads."""
    threads = max(result.threads, 1) if isinstance(result.threads, int) else 0
    return fastest(results, group="ceiling", threads=threads, baseline=result.baseline)


def numpy_loop(results: list[Result], result: Result) -> Result | None:
    """Return the faster NumPy loop."""
    return fastest(results, group="numpy", baseline=result.baseline)


def no_workers(results: list[Result], result: Result) -> Result | None:
    """Return the same line without workers."""
    if result.group != "onemodel" or result.threads == 0:
        return None
    return fastest(results, group="onemodel", name=result.name, threads=0)


def best_fixed(results: list[Result], result: Result) -> Result | None:
    """Return the same line with the number of workers that was fastest, for "auto"."""
    fixed = [each for each in results if each.threads != "auto"]
    return fastest(fixed, name=result.name) if result.threads == "auto" else None


@dataclass
class Table:
    """One table: its lines, and what the ratio columns divide by."""

    name: str
    title: str
    results: list[Result]
    unit: str = "batches/s"
    """What a figure is; "time" for seconds, "share" for a part of 1, "count" for a number."""
    notes: list[str] = field(default_factory=list)
    columns: dict[str, Reference] = field(
        default_factory=lambda: {"of C": ceiling, "of NumPy": numpy_loop}
    )
    units: dict[str, str] = field(default_factory=dict)
    """The units of what else the lines say, where they are not the table's."""

    def ratios(self, result: Result) -> dict[str, float]:
        """Return the line's ratio to each column's reference, where it has one."""
        found: dict[str, float] = {}
        for column, reference in self.columns.items():
            other = reference(self.results, result) if result.figures else None
            if other is not None:
                found[column] = result.ratio(other)
        return found

    @property
    def also(self) -> list[str]:
        """Names of what else the lines say, in the order of the lines."""
        return list(dict.fromkeys(name for each in self.results for name in each.also))


def machine() -> dict[str, Any]:
    """Return what the figures hang on: processor, cores, memory, load, versions, command."""
    versions = {"python": platform.python_version()}
    for name in PEERS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "system": f"{platform.system()} {platform.machine()}",
        "load at start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "compiler": compiler_version(),
        "versions": versions,
        "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def processor() -> str:
    """Return the processor's name with its family and model, which a hypervisor may shorten."""
    fields: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    except OSError:
        return platform.processor() or platform.machine()
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    return f"{name}, last-level cache {fields.get('cache size', '?')} a core"


def number(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.1%}"
    if unit == "time":
        for name, factor in (("s", 1.0), ("ms", 1e3)):
            if value * factor >= 1:
                return f"{value * factor:.3g} {name}"
        return f"{value * 1e6:.3g} µs"
    if unit == "count":
        return f"{value:.0f}"
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def rows(table: Table) -> list[list[str]]:
    """Return the table's cells, heading first, skipped lines left out."""
    ratios = [table.ratios(result) for result in table.results]
    columns = [name for name in table.columns if any(name in found for found in ratios)]
    cells = [["", "threads", table.unit, "±", *columns, *table.also]]
    for result, found in zip(table.results, ratios, strict=True):
        if not result.figures:
            continue
        line = [result.name, str(result.threads), number(result.median, table.unit)]
        line.append(f"{result.spread:.0%}" if result.spread == result.spread else "")
        line += [f"{found[name]:.2f}" if name in found else "" for name in columns]
        for name in table.also:
            values = result.also.get(name)
            unit = table.units.get(name, table.unit)
            line.append(number(statistics.median(values), unit) if values else "")
        cells.append(line)
    return cells


def show(table: Table) -> None:
    """Print one table, with what was skipped and why below it."""
    cells = rows(table)
    sizes = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    print(f"\n{table.title}")
    for count, line in enumerate(cells):
        padded = [line[0].ljust(sizes[0])]
        padded += [cell.rjust(size) for cell, size in zip(line[1:], sizes[1:], strict=True)]
        print("  ".join(padded).rstrip())
        if count == 0:
            print("-" * (sum(sizes) + 2 * len(sizes) - 2))
    for note in table.notes:
        print(note)
    for result in table.results:
        if result.skipped:
            print(f"skipped {result.name}: {result.skipped}")


def save(table: Table, where: dict[str, Any], folder: Path = RESULTS) -> list[Path]:
    """Write the table as JSON and Markdown, and as a plot where Matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{table.name}.json", folder / f"{table.name}.md"]
    lines = [asdict(each) | {"median": each.median} for each in table.results]
    for line in lines:
        if line["median"] != line["median"]:
            line["median"] = None  # JSON knows no NaN
    content = {"title": table.title, "unit": table.unit, "machine": where, "results": lines}
    written[0].write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    written[1].write_text(markdown(table, where))
    picture = plot(table, where, folder / f"{table.name}.png")
    return written + ([picture] if picture else [])


def markdown(table: Table, where: dict[str, Any]) -> str:
    cells = rows(table)
    text = [f"# {table.title}", ""]
    text.append("| " + " | ".join(cells[0]) + " |")
    text.append("|---" + "|---:" * (len(cells[0]) - 1) + "|")
    text += ["| " + " | ".join(line) + " |" for line in cells[1:]]
    text += ["", *table.notes, ""]
    text += [f"- skipped: {each.name}: {each.skipped}" for each in table.results if each.skipped]
    for key, value in where.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {version}" for name, version in value.items())
        text.append(f"- {key}: {value}")
    return "\n".join(text) + "\n"


def plot(table: Table, where: dict[str, Any], path: Path) -> Path | None:
    """Draw the medians as bars, one colour a group; None without Matplotlib or figures."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return None
    timed = [each for each in table.results if each.figures]
    if not timed:
        return None
    colours = {"ceiling": "0.6", "onemodel": "tab:red", "numpy": "tab:blue", "peer": "tab:green"}
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.27 * len(timed)), layout="constrained")
    labels = [f"{each.name} · {each.threads}" for each in timed]
    axes.barh(
        range(len(timed)),
        [each.median for each in timed],
        color=[colours.get(each.group, "0.3") for each in timed],
    )
    axes.set_yticks(range(len(timed)), labels, fontsize=8)
    axes.invert_yaxis()
    if table.unit == "time":
        axes.set_xscale("log")
    axes.set_xlabel(f"{table.unit} · name · threads beside the caller's")
    axes.set_title(table.title, fontsize=10)
    figure.supxlabel(f"{where['processor']}, {where['cores']} cores, {where['date']}", fontsize=7)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path
