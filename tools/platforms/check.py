"""Make the canonical batches on other platforms and compare them with those of this one.

python tools/platforms/check.py [--tests none|kernels|all] [--write] [NAME...]

For each platform: a root where it is another architecture (kept in the cache), the extensions by
its compiler with the flags of setup.py, `onemodel verify --json`, tests, tables written there and
read here, and the other way round. Prints one table; --write puts it into docs/platforms.md.
A platform whose tools this machine cannot get is named with the reason, and is no failure.

Needs Debian and root for foreign machines; Cython, setuptools, NumPy, pytest and hypothesis.
ONEMODEL_PLATFORMS_CACHE moves the cache.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from catalog import CI, FOREIGN, NATIVE, PLATFORMS, Platform
from disassembly import faults
from report import Row, shown, write_page

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
CACHE = Path(
    os.environ.get("ONEMODEL_PLATFORMS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onemodel-platforms"
)
EMULATED_LIMIT = "6000"  # seconds for one test: an emulator is ten to thirty times slower

KERNELS = [
    *(f"tests/test_{name}.py" for name in ("golden", "simd", "permutation", "rng", "float_mode")),
    *("tests/test_contract.py", "-k", "not test_contract or bucketed"),
]


class UnavailableError(Exception):
    """Why this machine cannot make a platform."""


def run(
    command: Sequence[str | Path],
    log: Path,
    env: dict[str, str] | None = None,
    cwd: Path = CHECKOUT,
) -> subprocess.CompletedProcess[str]:
    """Run a command, add what it printed to a log, and return both."""
    done = subprocess.run(
        [str(part) for part in command], env={**os.environ, **(env or {})}, cwd=cwd,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    with log.open("a") as file:
        file.write(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}\n")
    return done


@functools.cache
def install(packages: tuple[str, ...], log: Path) -> None:
    """Install Debian packages that are missing."""
    if shutil.which("dpkg-query") is None:
        raise UnavailableError("needs Debian's packages")
    asked = run(["dpkg-query", "-W", "-f", "${Package} ${Status}\n", *packages], log)
    missing = [name for name in packages if f"{name} install ok installed" not in asked.stdout]
    if not missing:
        return
    if os.geteuid() != 0:
        raise UnavailableError(f"needs root to install {', '.join(missing)}")
    # another job on this machine may be installing as well
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "--yes"]
    command += ["--no-install-recommends", *missing]
    done = run(command, log, {"DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode:
        run(["apt-get", "update"], log)
        done = run(command, log, {"DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["apt-get failed"])[-1]
        raise UnavailableError(f"cannot install {', '.join(missing)}: {reason}")


class Built:
    """A platform whose interpreter runs and whose package is compiled."""

    def __init__(self, wanted: Platform, source: Path, work: Path) -> None:
        self.wanted = wanted
        self.log = CACHE / f"{wanted.name}.log"
        self.log.write_text("")
        self.package = work / wanted.name
        install(wanted.packages, self.log)
        # emulated.sh reads these; a native interpreter only what Python reads
        self.env = {"PACKAGE": str(self.package), "PYTHONPATH": str(self.package)}
        if wanted.debian:
            self._find_root()
        else:
            self._find_interpreter()
        # a release's Python may be newer than the emulator that this machine has
        if self.run("-c", "import numpy, pytest, hypothesis", at=work).returncode:
            raise UnavailableError(f"its Python does not run here: see {self.log}")
        self._compile(source)

    def _find_root(self) -> None:
        wanted = self.wanted
        for suite in wanted.suites:
            root = CACHE / f"{wanted.debian}-{suite}"
            if (root / ".whole").exists():
                break
            if run([HERE / "root.sh", wanted.debian, suite, root], self.log).returncode == 0:
                break
            shutil.rmtree(root, ignore_errors=True)
        else:
            raise UnavailableError(f"no Debian {' or '.join(wanted.suites)}: see {self.log}")
        self.env |= {"EMULATOR": wanted.emulator, "TRIPLET": wanted.triplet}
        if wanted.cpu:
            self.env["QEMU_CPU"] = wanted.cpu
        self.python: list[str | Path] = [HERE / "emulated.sh", root]
        name = os.readlink(root / "usr/bin/python3")  # its default: NumPy is there for that one
        # only Python's headers are the root's; those of libc are the cross compiler's
        headers = self.package.parent / f"{wanted.name}-include"
        shutil.rmtree(headers, ignore_errors=True)
        (headers / wanted.triplet).mkdir(parents=True)
        (headers / name).symlink_to(root / "usr/include" / name)
        (headers / wanted.triplet / name).symlink_to(root / "usr/include" / wanted.triplet / name)
        self.includes = [headers / name, headers]
        self.suffix = f".cpython-{name.removeprefix('python').replace('.', '')}-{wanted.triplet}.so"

    def _find_interpreter(self) -> None:
        wanted = self.wanted
        self.python = [sys.executable]
        if wanted.emulator:
            self.python = [wanted.emulator, os.path.realpath(sys.executable)]
            self.env["PYTHONPATH"] += os.pathsep + sysconfig.get_path("purelib")
            self.env["QEMU_CPU"] = wanted.cpu
        self.includes = [Path(sysconfig.get_path("include"))]
        self.suffix = sysconfig.get_config_var("EXT_SUFFIX")

    def _compile(self, source: Path) -> None:
        wanted = self.wanted
        command = [
            sys.executable, HERE / "cross_build.py", source, self.package, "--compiler",
            " ".join([*(["ccache"] if shutil.which("ccache") else []), wanted.compiler]),
            "--suffix", self.suffix, "--machine", wanted.machine, "--bits", str(wanted.bits),
            *(f"--include={folder}" for folder in self.includes),
            *(f"--flag={flag}" for flag in wanted.flags),
        ]  # fmt: skip
        if run(command, self.log).returncode:
            raise RuntimeError(f"{wanted.name} does not build: see {self.log}")

    def run(
        self, *arguments: str | Path, at: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python, in the package's folder or elsewhere."""
        limit = {"ONEMODEL_TEST_LIMIT": EMULATED_LIMIT} if self.wanted.emulator else {}
        command = [*self.python, *arguments]
        return run(command, self.log, {**self.env, **limit}, at or self.package)

    def verify(self) -> dict:
        """Return what `onemodel verify --json` says there."""
        done = self.run("-m", "onemodel._cli.main", "verify", "--json")
        if not done.stdout.startswith("{"):
            raise RuntimeError(f"verify fails on {self.wanted.name}: see {self.log}")
        return json.loads(done.stdout)

    def test(self, tests: Sequence[str]) -> tuple[bool, str]:
        """Run tests; return whether they passed and pytest's last line."""
        done = self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests)
        lines = done.stdout.strip().splitlines() or ["nothing ran"]
        return done.returncode == 0, lines[-1].strip("= ").split(" in ")[0]

    def exchange_tables(self, ours: Path, work: Path) -> bool:
        """Return whether tables from here and from there give the same batches here and there."""
        script = HERE / "tables.py"
        theirs = work / f"{self.wanted.name}-tables"
        theirs.mkdir()
        self.run(script, "write", theirs)
        here = {"PYTHONPATH": str(CHECKOUT)}
        read = [
            self.run(script, "read", ours),
            self.run(script, "read", theirs),
            run([sys.executable, script, "read", ours], self.log, here),
            run([sys.executable, script, "read", theirs], self.log, here),
        ]
        return all(done.returncode == 0 for done in read) and len({d.stdout for d in read}) == 1


def check(wanted: Platform, source: Path, ours: Path, work: Path, tests: Sequence[str]) -> Row:
    """Return the row of one platform."""
    began = time.monotonic()
    try:
        built = Built(wanted, source, work)
    except UnavailableError as reason:
        return Row(wanted.name, skipped=str(reason))
    found = built.verify()
    same = found["same"] == found["total"]
    if wanted.must_differ:
        return Row(wanted.name, found, wanted.flags, good=not same, tests="must differ")
    good, told = built.test(tests) if tests else (True, "")
    exchanged = built.exchange_tables(ours, work) if wanted.debian else None
    if wanted.debian == "arm64":
        wrong = faults(f"{wanted.triplet}-objdump", built.package)
        good = good and not wrong
        told = "; ".join([told, *(wrong or ["vectors, nothing fused"])]).removeprefix("; ")
    return Row(
        wanted.name, found, wanted.flags, good=good and same and exchanged is not False,
        tests=told, tables=exchanged, seconds=time.monotonic() - began,
    )  # fmt: skip


def main() -> None:
    """Check the platforms that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PLATFORMS)}")
    parser.add_argument("--ci", action="store_true", help=f"those of CI: {', '.join(CI)}")
    parser.add_argument("--tests", choices=("none", "kernels", "all"), default="kernels")
    parser.add_argument("--write", action="store_true", help="the table into docs/platforms.md")
    given = parser.parse_args()
    unknown = set(given.names) - set(PLATFORMS)
    if unknown:
        parser.error(f"NAME must be of {', '.join(PLATFORMS)}, got {', '.join(sorted(unknown))}")
    names = given.names or (CI if given.ci else (*NATIVE, *FOREIGN))
    CACHE.mkdir(parents=True, exist_ok=True)

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source, ours = work / "source", work / "tables"
        source.mkdir()
        ours.mkdir()
        tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=CHECKOUT)
        for name in tracked.decode().split("\0")[:-1]:
            if (CHECKOUT / name).exists():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(CHECKOUT / name, source / name)
        log = CACHE / "native.log"
        run([sys.executable, HERE / "tables.py", "write", ours], log, {"PYTHONPATH": str(CHECKOUT)})
        for name in names:
            wanted = PLATFORMS[name]
            tests = {"none": [], "kernels": KERNELS, "all": ["tests"]}[given.tests]
            rows.append(check(wanted, source, ours, work, tests))
            print(shown([rows[-1]], heading=len(rows) == 1), flush=True)
    if given.write:
        write_page(CHECKOUT / "docs/platforms.md", rows)
    failed = [row.name for row in rows if not row.good]
    if failed:
        sys.exit(f"not as it must be: {', '.join(failed)}; logs are in {CACHE}")


if __name__ == "__main__":
    main()
