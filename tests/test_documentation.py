"""Promise: what the documentation says is true; examples run, links work, and names have texts.

Examples are Python code blocks of the Markdown files and docstrings of all modules, compiled ones
included. The pages lie in the source tree only; where it is not there, as when the tests run
against an installed wheel in a browser, these tests are skipped and the docstrings still run.
"""

import ast
import doctest
import importlib
import pkgutil
import re
import warnings
from pathlib import Path

import pytest

import onemodel as om
from onemodel._common.threads import can_start_threads

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

PAGES = [
    path
    for path in [*ROOT.glob("*.md"), ROOT / "onemodel" / "README.md", *ROOT.glob("docs/**/*.md")]
    if path.is_file()
]
WITH_DOCTESTS = [path for path in PAGES if ">>> " in path.read_text(encoding="utf-8")]
SKIPPED = [pytest.param(None, marks=pytest.mark.skip(reason="the source tree is not here"))]

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(om.__path__, "onemodel.")
    if not module.name.rpartition(".")[2].startswith("_")
)
#: Modules that need an optional package.
NEEDS = {"onemodel.torch": "torch", "onemodel.numba": "numba"}
PUBLIC = [om, om.augment, om.datasets, om.image, om.transforms]


def parametrized(paths):
    """One test for each path, or one that is skipped and says why."""
    by_name = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return pytest.mark.parametrize(
        "page", list(by_name.values()) or SKIPPED, ids=list(by_name) or None
    )


def code_blocks(page):
    """Every fenced block: its language, its text, and the line it begins at, from 0."""
    blocks, language, lines, start = [], None, [], 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, lines, start = line.strip("`").strip(), [], number + 1
        else:
            blocks.append((language, "\n".join(lines) + "\n", start))
            language = None
    assert language is None, f"{page}: a code block is not closed"
    return blocks


def prose(page):
    """The text without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def headings(page):
    """What `#fragment` may name on a page, as GitHub spells it."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = re.findall(r"^#+ +(.+?) *$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def import_or_skip(name):
    """The module, or a skipped test where a package that it needs is missing."""
    for part, package in NEEDS.items():
        if f"{name}.".startswith(f"{part}."):
            pytest.importorskip(package, reason=f"{package} is not installed")
    return importlib.import_module(name)


def run(tests, report):
    """Run doctests and fail with what differed."""
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    output = []
    for test in tests:
        runner.run(test, out=output.append, clear_globs=False)
    assert runner.failures == 0, f"{report}:\n{''.join(output)}"
    return runner.tries


@parametrized(WITH_DOCTESTS)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """The blocks of one page follow one another, as a reader types them."""
    monkeypatch.chdir(tmp_path)
    needs = re.match(r"<!-- needs (.*) -->", page.read_text(encoding="utf-8"))
    for package in needs[1].split(", ") if needs else []:
        pytest.importorskip(package, reason=f"{package} is not installed")
    names = {"__name__": "__main__"}
    parser = doctest.DocTestParser()
    tests = [
        parser.get_doctest(text, names, page.name, str(page), line)
        for language, text, line in code_blocks(page)
        if language == "python" and ">>> " in text
    ]
    # one namespace: get_doctest would give each block a copy
    for test in tests:
        test.globs = names
    with warnings.catch_warnings():
        if needs:  # other packages warn of themselves
            warnings.simplefilter("ignore")
        assert run(tests, page) > 0, f"{page}: a doctest is outside of a python block"


@parametrized(PAGES)
def test_the_other_python_blocks_of_a_page_compile(page):
    for language, text, line in code_blocks(page):
        if language == "python" and ">>> " not in text:
            where = f"{page}, block at line {line}"
            compile(text, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)


@parametrized(PAGES)
def test_every_relative_link_leads_somewhere(page):
    targets = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(page))
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page}: no file at {target}"
        if fragment:
            assert fragment in headings(found), f"{page}: {found.name} has no heading {fragment!r}"


@pytest.mark.parametrize("name", ["onemodel", *MODULES])
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    """Cython modules too: they list their docstrings in `__test__` and as attributes."""
    if name == "onemodel._common.threads" and not can_start_threads():
        pytest.skip("its example says that threads can start, and here they cannot")
    monkeypatch.chdir(tmp_path)
    module = import_or_skip(name)
    run(doctest.DocTestFinder(exclude_empty=True).find(module, name), name)


@pytest.mark.parametrize("name", ["onemodel", *MODULES])
def test_every_module_says_what_it_is_for(name):
    module = import_or_skip(name)
    assert (module.__doc__ or "").strip() or name == "onemodel.data"


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_public_names_are_sorted(module):
    assert module.__all__ == sorted(module.__all__)


@pytest.mark.parametrize("name", om.__all__)
def test_every_public_name_has_a_docstring(name):
    assert (getattr(om, name).__doc__ or "").strip()


@pytest.mark.parametrize("name", ["onemodel", *MODULES])
def test_all_names_exist_and_are_documented(name):
    module = import_or_skip(name)
    for public in getattr(module, "__all__", []):
        value = getattr(module, public)
        if callable(value):
            assert (value.__doc__ or "").strip(), f"{name}.{public} has no docstring"


def architecture_and_files():
    """The text of the architecture page, and the path in the package of every source file."""
    page = ROOT / "docs" / "architecture.md"
    if not page.is_file():
        pytest.skip("the source tree is not here")
    files = {
        path.relative_to(ROOT / "onemodel").as_posix()
        for pattern in ("*.py", "*.pyx", "*.pxd", "*.h")
        for path in (ROOT / "onemodel").rglob(pattern)
    }
    return page.read_text(encoding="utf-8"), files


def test_the_architecture_names_every_file():
    """A file that nobody put on the map is a file that nobody finds."""
    text, files = architecture_and_files()
    missing = [
        name
        for name in sorted(files)
        if not name.endswith("__init__.py")
        and f"`{name}`" not in text
        # a .pxd is named with its .pyx
        and not (name.endswith(".pxd") and f"`{name.removesuffix('.pxd')}.pyx`" in text)
    ]
    assert not missing, f"docs/architecture.md does not name {missing}"


def test_the_architecture_names_no_file_that_is_not_there():
    text, files = architecture_and_files()
    tables = "\n".join(line for line in text.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`([\w/]+\.(?:py|pyx|pxd|h))`", tables))
    assert len(named) > 50
    assert not sorted(named - files)
