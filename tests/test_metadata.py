"""Promise: a package that is built for an index links to its project, and so does its README.

The sources lie in the source tree only; elsewhere these tests are skipped.
"""

import os
import re
import subprocess
import sys
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytest.importorskip("Cython")
pytest.importorskip("setuptools")
pytestmark = [
    pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="the source tree is not here"),
    pytest.mark.usefixtures("needs_subprocess"),
]


def metadata(folder, project):
    """What building the package with this PROJECT_URL writes."""
    command = [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", str(folder)]
    environment = {**os.environ, "PROJECT_URL": project}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    text = (folder / "onemodel.egg-info" / "PKG-INFO").read_text(encoding="utf-8")
    return message_from_string(text)


def links(text):
    """The targets of all links and pictures."""
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_with_a_project_the_links_are_whole(tmp_path):
    found = metadata(tmp_path, "https://code.example/one/")
    urls = dict(entry.split(", ") for entry in found.get_all("Project-URL"))
    assert urls["Source"] == "https://code.example/one"
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues"}
    targets = links(found.get_payload())
    assert "https://code.example/one/blob/HEAD/docs/guides/resume.md" in targets
    assert "https://code.example/one/raw/HEAD/docs/images/demo.png" in targets
    assert all(re.match("https:|#", target) for target in targets)


def test_without_one_the_readme_stays_as_it_is(tmp_path):
    found = metadata(tmp_path, "")
    assert found.get_all("Project-URL") is None
    assert found.get_payload().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_every_picture_is_used_by_a_text():
    pictures = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "wasm" / "demo" / "README.md"]
    used = {Path(target).name for page in texts for target in links(page.read_text("utf-8"))}
    assert pictures <= used
