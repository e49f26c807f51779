"""Tables on the screen, and JSON, Markdown and a plot in benchmarks/results/."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.ceiling.build import compiler_version
from benchmarks.harness import Result, fastest

RESULTS = Path(__file__).parent / "results"
PEERS = ("onemodel", "numpy", "torch", "torchdata", "grain", "spdl", "numba", "tensorflow")


@dataclass
class Table:
    """One table: its lines, and which of them the ratio columns divide by."""

    name: str
    title: str
    results: list[Result]
    unit: str = "batches/s"
    notes: list[str] = field(default_factory=list)
    latency: bool = False

    def ratios(self, result: Result) -> dict[str, float]:
        """Return the line's ratio to its ceilings and to the better NumPy loop."""
        found: dict[str, float] = {}
        if self.latency or not result.figures:
            return found
        threads = max(result.threads, 1)
        ceiling = fastest(self.results, group="ceiling", threads=threads, baseline=result.baseline)
        loop = fastest(self.results, group="numpy", baseline=result.baseline)
        if ceiling:
            found["C"] = result.ratio(ceiling)
        if loop:
            found["NumPy"] = result.ratio(loop)
        return found


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


def number(value: float, latency: bool) -> str:
    if latency:
        for unit, factor in (("s", 1.0), ("ms", 1e3)):
            if value * factor >= 1:
                return f"{value * factor:.3g} {unit}"
        return f"{value * 1e6:.3g} µs"
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def rows(table: Table) -> list[list[str]]:
    """Return the table's cells, heading first, skipped lines left out."""
    heading = ["", "threads", table.unit, "±"]
    heading += [] if table.latency else ["of C", "of NumPy"]
    cells = [heading]
    for result in table.results:
        if not result.figures:
            continue
        ratios = table.ratios(result)
        line = [result.name, str(result.threads), number(result.median, table.latency)]
        line.append(f"{result.spread:.0%}" if result.spread == result.spread else "")
        if not table.latency:
            line += [f"{ratios[key]:.2f}" if key in ratios else "" for key in ("C", "NumPy")]
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
    if table.latency:
        axes.set_xscale("log")
    axes.set_xlabel(f"{table.unit} · name · threads beside the caller's")
    axes.set_title(table.title, fontsize=10)
    figure.supxlabel(f"{where['processor']}, {where['cores']} cores, {where['date']}", fontsize=7)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path
