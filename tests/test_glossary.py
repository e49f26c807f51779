"""One word has one meaning: the glossary defines each once, and words it retires are used nowhere.

docs/glossary.md is the only list of both. Its pages lie in the source tree only; where that is not
there, as when the tests run against an installed wheel, these tests are skipped.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
CODE = (".py", ".pyx", ".pxd", ".pyi", ".h")

PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("onemodel/**/*.md"),
    *ROOT.glob("examples/**/*.md"),
    *ROOT.glob("tests/golden/*.md"),
    ROOT / "benchmarks" / "README.md",
    ROOT / "wasm" / "README.md",
    ROOT / "wasm" / "demo" / "README.md",
]

pytestmark = pytest.mark.skipif(not GLOSSARY.is_file(), reason="the source tree is not here")


def rows(heading):
    """The cells of the table below a heading of the glossary, without the head of the table."""
    section = GLOSSARY.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def terms():
    return [cells[0].strip("*") for cells in rows("Terms")]


def retired_words():
    return [word for cells in rows("Words not used") for word in re.findall("`([^`]+)`", cells[0])]


def uses(word, path):
    """The lines of a file on which a word begins, in any case and across ends of lines."""
    between = r"[\s*#]+".join(re.escape(part) for part in word.split())
    text = path.read_text(encoding="utf-8")
    found = re.finditer(rf"\b{between}\b", text, flags=re.IGNORECASE)
    return [text.count("\n", 0, match.start()) + 1 for match in found]


def assert_unused(paths):
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {word}"
        for path in sorted(paths)
        for word in retired_words()
        for line in uses(word, path)
    ]
    assert not found, "words that docs/glossary.md retires:\n" + "\n".join(found)


def test_every_term_is_defined_once_and_in_alphabetical_order():
    folded = [term.casefold() for term in terms()]
    assert folded == sorted(folded)
    assert len(set(folded)) == len(folded) > 50


def test_every_term_has_a_definition_that_is_a_sentence():
    for term, definition in rows("Terms"):
        assert re.fullmatch(r"\*\*[^*]+\*\*", term)
        assert definition.endswith("."), f"{term}: {definition}"


def test_no_term_is_a_retired_word():
    assert len(retired_words()) > 10
    assert not {term.casefold() for term in terms()} & set(retired_words())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("what the image\nstands\n    # on", [2]),
        ("Stands on", [1]),
        ("understands one", []),
    ],
)
def test_a_word_is_found_in_any_case_and_across_lines(tmp_path, text, lines):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert uses("stands on", page) == lines


def test_pages_do_not_use_retired_words():
    assert_unused(set(PAGES) - {GLOSSARY})


def test_code_does_not_use_retired_words():
    paths = [path for path in (ROOT / "onemodel").rglob("*") if path.suffix in CODE]
    assert len(paths) > 50
    assert_unused(paths)
