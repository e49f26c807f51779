"""Promise: the package is made of layers, and no file knows anything above its own.

Every `import`, `cimport`, `#include` and `cdef extern from` of the source is an arrow from one
module to another. No arrow goes up, none closes a circle, and none leads from one public package
into the inside of another. Relative imports, imports inside of functions and imports for the type
checker count as well.
"""

import ast
import posixpath
import re
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent / "onemodel"

# The lowest first. Folders of one level are neighbours, which do not import each other.
LEVELS = (
    {"_common"},
    {"_batch"},
    {"_memory"},
    {"_simd"},
    {"_random"},
    {"augment", "transforms", "datasets", "image", "data"},
    {"_collate", "_samplers"},
    {"_builders"},
    {"_engine", "_state"},
    {"_loader"},
    {"loader"},
    {"_checks"},
    {"torch", "numba"},
    {"__init__"},
    {"_cli"},
    {"__main__"},
)
HEIGHT = {layer: height for height, layers in enumerate(LEVELS) for layer in layers}

# What one public package may take from another: these names, from these modules.
SHARED = {
    ("onemodel/datasets/__init__", "Sample"),
    ("onemodel/datasets/__init__", "Columns"),
    ("onemodel/datasets/sample", "Sample"),
    ("onemodel/datasets/sample", "Columns"),
}
MOST_MODULES = 11

STRING = re.compile(
    r"(?P<text>'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")|#[^\n]*",
    re.DOTALL,
)
STATEMENT = re.compile(
    r"(?:^|[;:])[ \t]*(?:"
    r"from[ \t]+(?P<origin>[\w.]+)[ \t]+c?import[ \t]*(?:\((?P<group>[^)]*)\)|(?P<names>[^;\n]*))"
    r"|c?import[ \t]+(?P<modules>[^;\n]*))",
    re.MULTILINE,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
EXTERN = re.compile(r"""^[ \t]*cdef[ \t]+extern[ \t]+from[ \t]+["']([^"']+)["']""", re.MULTILINE)
TEXT_INCLUDE = re.compile(r"""^[ \t]*include[ \t]+["']([^"']+)["']""", re.MULTILINE)


class Arrow(NamedTuple):
    """One import: the file it is in, the node it leads to, and the name that it takes."""

    file: str
    target: str
    name: str

    def __str__(self):
        return f"{self.file} -> {self.target} ({self.name})"


def without_strings(source):
    """The code alone, with as many lines as before: no comment and no string."""
    return STRING.sub(lambda found: "\n" * found.group().count("\n"), source)


def imports(path, source):
    """Every imported (module, name); the name is empty where a whole module is imported."""
    package = PurePosixPath(path).parent.parts

    def absolute(module, level):
        base = package[: len(package) - level + 1] if level else ()
        return ".".join([*base, module] if module else base)

    if path.endswith((".py", ".pyi")):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = absolute(node.module, node.level)
                yield from ((module, alias.name) for alias in node.names)
        return
    code = without_strings(source).replace("\\\n", " ")
    for found in STATEMENT.finditer(code):
        taken = found["group"] or found["names"] or found["modules"] or ""
        taken = [each.split()[0] for each in taken.split(",") if each.strip()]
        if found["origin"] is None:
            yield from ((module, "") for module in taken)
        else:
            name = found["origin"].lstrip(".")
            module = absolute(name, len(found["origin"]) - len(name))
            yield from ((module, each) for each in taken)


def node_of(path):
    """A module for a `.py`, `.pyx`, `.pxd` and `.pyi` of one name; a header is its own node."""
    return path if path.endswith(".h") else path.rpartition(".")[0]


def layer_of(node):
    """The folder under `onemodel/`, or the name of a file directly in it."""
    return node.split("/")[1]


def arrows_of(files):
    """All arrows between the files, a dict from `onemodel/...` paths to their sources."""
    nodes = {node_of(path) for path in files}
    headers = {path for path in files if path.endswith(".h")}

    def module(dotted):
        node = dotted.replace(".", "/")
        return next((each for each in (node, f"{node}/__init__") if each in nodes), None)

    def included(path, name):
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if beside in headers:
            return beside
        anywhere = f"/{posixpath.basename(name)}"
        return next((each for each in sorted(headers) if each.endswith(anywhere)), None)

    arrows = []
    for path, source in files.items():
        if path.endswith(".h"):
            found = [(included(path, name), name) for name in INCLUDE.findall(source)]
        else:
            found = []
            for origin, name in imports(path, source):
                if origin.partition(".")[0] == "onemodel":
                    target = (name and module(f"{origin}.{name}")) or module(origin)
                    assert target, f"{path}: no module {origin}"
                    found.append((target, name or origin))
        if path.endswith((".pyx", ".pxd")):
            names = EXTERN.findall(source) + TEXT_INCLUDE.findall(source)
            found += [(included(path, name), name) for name in names]
        arrows += [Arrow(path, target, name) for target, name in found if target]
    return [arrow for arrow in arrows if arrow.target != node_of(arrow.file)]


def upward(arrows):
    """The arrows that lead to a higher layer."""
    return [
        arrow
        for arrow in arrows
        if HEIGHT[layer_of(arrow.target)] > HEIGHT[layer_of(node_of(arrow.file))]
    ]


def across(arrows):
    """The arrows between neighbours, other than to a name that is shared."""
    found = []
    for arrow in arrows:
        here, there = layer_of(node_of(arrow.file)), layer_of(arrow.target)
        shared = (arrow.target, arrow.name) in SHARED
        if here != there and HEIGHT[here] == HEIGHT[there] and not shared:
            found.append(arrow)
    return found


def circles(arrows):
    """Groups of modules each of which reaches all others of its group."""
    after = defaultdict(set)
    for arrow in arrows:
        after[node_of(arrow.file)].add(arrow.target)

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            fresh = after.get(waiting.pop(), set()) - seen
            seen |= fresh
            waiting += fresh
        return seen

    below = {node: reached(node) for node in list(after)}
    return sorted(
        {
            tuple(sorted(other for other in below[node] if node in below.get(other, ())))
            for node in below
            if node in below[node]
        }
    )


def starts_threads(source):
    """Whether code makes or starts a thread, or has a library start some."""
    return re.search(
        r"\bthreading\.Thread\b|\bfrom threading import[^\n]*\bThread\b|\.start\(\)"
        r"|\b_thread\b|\bconcurrent\.futures\b|\bmultiprocessing\b",
        without_strings(source),
    )


def reads_platform(source):
    """Whether code asks which platform this is."""
    return re.search(
        r"\bsys\.platform\b|\bfrom sys import[^\n]*\bplatform\b", without_strings(source)
    )


@pytest.fixture(scope="module")
def files():
    """Every source file of the package."""
    if not (ROOT / "_simd" / "dispatch.pyx").is_file():
        pytest.skip("the source tree is not here")
    return {
        path.relative_to(ROOT.parent).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*"))
        if path.suffix in {".py", ".pyx", ".pxd", ".pyi", ".h"}
    }


def listed(found):
    return "\n".join(map(str, found))


def test_every_folder_is_a_layer(files):
    assert {layer_of(node_of(path)) for path in files} <= set(HEIGHT)


def test_every_folder_says_what_it_knows_and_what_it_must_not_know(files):
    for path, source in files.items():
        if path.endswith("/__init__.py") and path != "onemodel/__init__.py":
            text = " ".join((ast.get_docstring(ast.parse(source)) or "").split())
            assert re.search(r"\. It knows .+\. It must not know .+\.", text), path


def test_every_import_is_read(files):
    """A reader that finds nothing would let everything pass."""
    arrows = arrows_of(files)
    assert {PurePosixPath(arrow.file).suffix for arrow in arrows} == {
        ".py",
        ".pyx",
        ".pxd",
        ".pyi",
        ".h",
    }
    assert len(arrows) > 200


def test_no_arrow_goes_up(files):
    found = upward(arrows_of(files))
    assert not found, listed(found)


def test_no_circles(files):
    found = circles(arrows_of(files))
    assert not found, listed(found)


def test_public_packages_know_nothing_of_each_other(files):
    found = across(arrows_of(files))
    assert not found, listed(found)


def test_no_folder_is_crowded(files):
    modules = defaultdict(set)
    for path in files:
        if path.endswith((".py", ".pyx")):
            modules[PurePosixPath(path).parent.as_posix()].add(node_of(path))
    crowded = {folder: len(nodes) for folder, nodes in modules.items() if len(nodes) > MOST_MODULES}
    assert not crowded


def test_one_file_starts_threads(files):
    code = {path: source for path, source in files.items() if not path.endswith(".pyi")}
    found = [path for path, source in code.items() if starts_threads(source)]
    assert len(found) == 1
    assert found[0].startswith("onemodel/_engine/")


def test_one_file_asks_for_the_platform(files):
    found = [path for path, source in files.items() if reads_platform(source)]
    assert found == ["onemodel/_common/threads.py"]


# The checker on small sources: what it must find, it finds.

SMALL = {
    "onemodel/__init__.py": "from onemodel.loader import DataLoader\n",
    "onemodel/loader.py": "import onemodel._common.integers\n",
    "onemodel/_common/integers.py": "",
    "onemodel/_common/describe.py": "",
    "onemodel/_random/rng.pyx": "",
    "onemodel/_simd/rows.h": "",
    "onemodel/_memory/arrays.h": "",
    "onemodel/datasets/__init__.py": "from onemodel.datasets.sample import Sample\n",
    "onemodel/datasets/sample.pyx": "from onemodel._common.integers import check_integer\n",
    "onemodel/datasets/gather.pyx": "",
    "onemodel/transforms/__init__.py": "",
    "onemodel/transforms/protocol.pyx": "",
}


def small(**changed):
    """The arrows of a small package in which some files differ."""
    return arrows_of(SMALL | changed)


def test_a_good_package_passes():
    arrows = arrows_of(SMALL)
    assert len(arrows) == 4
    assert upward(arrows) == across(arrows) == circles(arrows) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("onemodel/_common/integers.py", "from onemodel.loader import DataLoader"),
        ("onemodel/_common/integers.py", "import onemodel"),
        ("onemodel/_common/integers.py", "from onemodel import DataLoader"),
        ("onemodel/_common/integers.py", "import numpy, onemodel.loader as x"),
        ("onemodel/_common/integers.py", "from ..loader import DataLoader"),
        ("onemodel/_common/integers.py", "from .. import loader"),
        ("onemodel/_common/integers.py", "def f():\n    from onemodel import loader"),
        ("onemodel/_common/integers.py", "if TYPE_CHECKING:\n    import onemodel.loader"),
        ("onemodel/_common/integers.pyi", "from onemodel.loader import DataLoader"),
        ("onemodel/_common/integers.pyx", "from onemodel._random.rng cimport SampleRng"),
        ("onemodel/_common/integers.pyx", "from onemodel._random cimport rng"),
        ("onemodel/_common/integers.pyx", "cimport onemodel._random.rng as rng"),
        ("onemodel/_common/integers.pyx", "from .._random.rng cimport mix"),
        ("onemodel/_common/integers.pyx", "if x: import onemodel.loader"),
        ("onemodel/_common/integers.pyx", "x = '#'; import onemodel.loader"),
        ("onemodel/_common/integers.pxd", "from onemodel._random.rng cimport (\n    mix,\n)"),
        ("onemodel/_common/integers.pxd", 'cdef extern from "rows.h" nogil:\n    int x'),
        ("onemodel/_common/integers.pxd", 'cdef extern from "../_simd/rows.h":\n    int x'),
        ("onemodel/_memory/arrays.h", '#include "../_simd/rows.h"'),
        ("onemodel/_memory/arrays.h", '# include "rows.h"'),
    ],
)
def test_an_upward_arrow_is_found(path, source):
    assert [arrow.file for arrow in upward(small(**{path: source}))] == [path]


@pytest.mark.parametrize(
    "source",
    [
        '"""\nfrom onemodel.loader import DataLoader\n"""',
        "# import onemodel.loader",
        "x = 'import onemodel.loader'",
        "import numpy",
    ],
)
@pytest.mark.parametrize("suffix", [".py", ".pyx"])
def test_text_is_no_arrow(source, suffix):
    assert upward(small(**{f"onemodel/_common/integers{suffix}": source})) == []


def test_a_circle_is_found():
    first, second = "onemodel/_common/integers", "onemodel/_common/describe"
    arrows = small(
        **{
            f"{first}.py": "from onemodel._common.describe import describe",
            f"{second}.py": "def f():\n    from . import integers",
        }
    )
    assert circles(arrows) == [(second, first)]


def test_a_circle_through_other_kinds_of_file_is_found():
    """A `.pxd` is a part of its module, and a stub is as well."""
    first, second = "onemodel/transforms/one", "onemodel/transforms/two"
    arrows = small(
        **{
            f"{first}.pyx": "",
            f"{first}.pxd": "from onemodel.transforms.two cimport f",
            f"{second}.pyx": "",
            f"{second}.pyi": "from onemodel.transforms.one import g",
        }
    )
    assert circles(arrows) == [(first, second)]


def test_a_circle_of_headers_is_found():
    first, second = "onemodel/_simd/rows.h", "onemodel/_simd/pixels.h"
    arrows = small(**{first: '#include "pixels.h"', second: '#include "rows.h"'})
    assert circles(arrows) == [(second, first)]


@pytest.mark.parametrize(
    "source",
    [
        "from onemodel.transforms.protocol cimport address",
        "from onemodel.transforms import Compose",
        "from onemodel import transforms",
        "from ..transforms import protocol",
        "import onemodel.transforms.protocol",
    ],
)
def test_an_import_across_faces_is_found(source):
    path = "onemodel/datasets/gather.pyx"
    assert [arrow.file for arrow in across(small(**{path: source}))] == [path]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from onemodel.datasets import Sample", 0),
        ("from onemodel.datasets.sample cimport Sample", 0),
        ("from onemodel.datasets.sample cimport Sample, image_of", 1),
        ("from onemodel.datasets import gather", 1),
        ("import onemodel.datasets.sample", 1),
    ],
)
def test_only_shared_names_may_be_taken(source, count):
    assert len(across(small(**{"onemodel/transforms/protocol.pyx": source}))) == count


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("threading.Thread(target=f)", True),
        ("from threading import Lock, Thread", True),
        ("worker.start()", True),
        ("from concurrent.futures import ThreadPoolExecutor", True),
        ("lock = threading.Lock()", False),
        ("'''threading.Thread'''  # threading.Thread", False),
        ("match.start(1)", False),
    ],
)
def test_the_start_of_a_thread_is_found(source, found):
    assert bool(starts_threads(source)) is found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if sys.platform == 'wasi': pass", True),
        ("from sys import argv, platform", True),
        ("'''sys.platform'''  # sys.platform", False),
    ],
)
def test_a_question_for_the_platform_is_found(source, found):
    assert bool(reads_platform(source)) is found
