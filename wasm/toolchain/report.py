"""Print what the wheels in a folder hold, and refuse a wheel that breaks a promise.

The promises are onemodel's own: its wheel carries the tag that Pyodide accepts, it stays small
enough for a web page to download, and none of its extensions uses relaxed SIMD, whose results
differ from one machine to the next.
"""

import sys
import zipfile
from pathlib import Path

LIMIT = 700_000  # bytes, the whole wheel of onemodel, compressed, as a page downloads it


def kilobytes(size: int) -> str:
    return f"{size / 1000:9.1f} kB"


def report(wheel: Path, tag: str) -> list[str]:
    """Print one wheel's sizes, and return what is wrong with it."""
    print(f"{kilobytes(wheel.stat().st_size)}  {wheel.name}")
    if not wheel.name.startswith("onemodel-"):
        return []
    problems = []
    if not wheel.stem.endswith(f"-{tag}"):
        problems.append(f"{wheel.name} is not tagged {tag}")
    size = wheel.stat().st_size
    total = compressed = 0
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(".so"):
                continue
            total += entry.file_size
            compressed += entry.compress_size
            print(f"{kilobytes(entry.file_size)}    {entry.filename}")
            if b"relaxed-simd" in archive.read(entry):
                problems.append(f"{entry.filename} was compiled with relaxed SIMD")
    print(f"{kilobytes(total)}    all extension modules")
    print(f"{kilobytes(compressed)}    the same, compressed")
    print(f"{kilobytes(size)}    the whole wheel; the limit is {LIMIT // 1000} kB")
    if total == 0:
        problems.append(f"{wheel.name} holds no extension module")
    if size > LIMIT:
        problems.append(f"{wheel.name} has {size} bytes; the limit is {LIMIT}")
    return problems


def main() -> None:
    folder, tag = sys.argv[1:]
    problems = []
    for wheel in sorted(Path(folder).glob("*.whl")):
        problems += report(wheel, tag)
    for problem in problems:
        print(f"wasm: {problem}", file=sys.stderr)
    raise SystemExit(bool(problems))


if __name__ == "__main__":
    main()
