"""Promise: the site has every public name, every page and no link that leads nowhere.

It is built from the source tree; elsewhere these tests are skipped.
"""

import importlib
import re
import sys
from pathlib import Path

import pytest

import onemodel as om

TOOLS = Path(__file__).resolve().parent.parent / "tools"

pytestmark = pytest.mark.skipif(
    not (TOOLS / "build_site.py").is_file(), reason="the source tree is not here"
)

MODULES = [om, om.augment, om.datasets, om.image, om.transforms]
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")


@pytest.fixture
def tool(monkeypatch):
    """Import a module of tools/."""
    monkeypatch.syspath_prepend(str(TOOLS))

    def imported(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return imported


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_reference_names_everything_public(tool, module):
    page = tool("reference_pages").reference(module.__name__)
    for name in module.__all__:
        assert f"\n## {name}\n" in page
    assert "``" not in page.replace("```", "")
    assert page.count("```") % 2 == 0


def test_the_reference_says_how_things_are_called_and_what_they_give(tool):
    page = tool("reference_pages").reference("onemodel")
    assert "```python\nBucketedSampler(lengths, batch_size, *, pool_batches=64" in page
    assert "- `pool_batches`: batches that are sorted together" in page
    assert "### DataLoader.state_dict\n" in page
    assert "### DataLoader.steps_per_epoch\n" in page
    assert "```pycon\n>>> sampler = BucketedSampler(" in page
    augment = tool("reference_pages").reference("onemodel.augment")
    assert "```python\nBlur(p=0.5)\n```\n\nSoften the image" in augment


@pytest.mark.parametrize("project", ["", "https://code.example/one"])
def test_links_lead_to_pages_of_the_site_or_to_the_project(tool, tmp_path, project):
    site = tool("build_site")
    names = site.gather(tmp_path, with_page=False, project=project)
    assert {"README.md", "docs/guides/resume.md", "docs/specification.md"} <= names
    for path in tmp_path.rglob("*.md"):
        prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
        prose = re.sub(r"`[^`\n]*`", "", prose)
        for target in LINK.findall(prose):
            assert (path.parent / target).is_file(), f"{path}: {target}"
    start = (tmp_path / "README.md").read_text("utf-8")
    assert (f"[benchmarks/results]({project}/blob" in start) == bool(project)


def test_guides_lead_to_the_run_that_they_are_about(tool, tmp_path):
    site = tool("build_site")
    site.gather(tmp_path, with_page=True)
    resume = (tmp_path / "docs" / "guides" / "resume.md").read_text("utf-8")
    assert resume.startswith("# Resume\n\n*[Step through a run that was resumed at step 1,000](")
    assert "](../../page/index.html#data=digits" in resume


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tool, tmp_path, needs_subprocess):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html><title>the page</title>", encoding="utf-8")
    output = tmp_path / "site"
    tool("build_site").build(output, page)
    assert (output / "page" / "index.html").read_text("utf-8").endswith("<title>the page</title>")
    for name in ("index.html", "docs/guides/resume.html", "reference/onemodel.html"):
        html = (output / name).read_text("utf-8")
        assert not re.search(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//', html)
    assert (output / "search" / "search_index.json").is_file()
