"""Builds the documentation as a static site: `make site`.

    python tools/build_site.py OUTPUT [PAGE]

The Markdown files are the source, as they are: they are gathered with their places, so that links
between them hold, and an API reference is written from the docstrings. PAGE is a folder that
`make page` wrote; the site then has the demo page in it. PROJECT_URL is the address of the
project's repository, if it has one: links to files that are not part of the site lead there.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent))

import reference_pages  # noqa: E402

PAGES = (
    "*.md",
    "docs/**/*.md",
    "benchmarks/**/*.md",
    "examples/**/*.md",
    "onemodel/**/*.md",
    "tests/golden/*.md",
    "wasm/**/README.md",
)
PICTURES = "docs/images/*.png"
SKIPPED = {"node_modules", "dist", "vendor", ".venv"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")

# What a reader of a guide can step through in the next tab: its words, and the page's address.
TRIALS = {
    "docs/guides/resume.md": (
        "a run that was resumed at step 1,000",
        "#data=digits&sampler=bucketed&batch=12&seed=42&g=1000",
    ),
    "docs/guides/first-run.md": (
        "a run of digit lines",
        "#data=digits&sampler=bucketed&batch=32&seed=42&augment=gain&g=0",
    ),
    "docs/guides/sharding.md": (
        "the global batches that ranks share",
        "#data=digits&sampler=shuffled&batch=32&seed=42&g=0",
    ),
}


def gather(folder, with_page, project=""):
    """Write everything that the site is made from into a folder; return the pages' names."""
    names = {
        path.relative_to(ROOT).as_posix()
        for pattern in PAGES
        for path in ROOT.glob(pattern)
        if not SKIPPED.intersection(path.relative_to(ROOT).parts)
    }
    pictures = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(PICTURES)}
    for name in sorted(names | pictures):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in pictures:
            shutil.copyfile(ROOT / name, target)
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        text = outside_links(text, name, names | pictures, project)
        if with_page and name in TRIALS:
            text = with_trial(text, name)
        target.write_text(text, encoding="utf-8")
    (folder / "reference").mkdir()
    for package in reference_pages.PACKAGES:
        page = folder / "reference" / f"{package}.md"
        page.write_text(reference_pages.reference(package), encoding="utf-8")
    return names


def outside_links(text, name, known, project):
    """Lead links to files outside of the site to the project, or leave their words."""

    def changed(found):
        picture, words, target, _ = found.groups()
        path = os.path.normpath(PurePosixPath(name).parent / target).replace(os.sep, "/")
        if path in known:
            return found[0]
        return f"{picture}[{words}]({project}/blob/HEAD/{path})" if project else words

    blocks = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        block if block.startswith("```") else LINK.sub(changed, block) for block in blocks
    )


def with_trial(text, name):
    """Add, below a guide's heading, a link to the page that shows what it is about."""
    up = "../" * name.count("/")
    words, address = TRIALS[name]
    line = f"*[Step through {words}]({up}page/index.html{address}) in your browser.*"
    heading, _, rest = text.partition("\n")
    return f"{heading}\n\n{line}\n{rest}"


def build(output, page=None, project=""):
    """Build the site into `output`, a folder that is made anew."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        gather(source, page is not None, project)
        if page is not None:  # before the site is built, so that links to it are checked
            shutil.copytree(page, source / "page", ignore=shutil.ignore_patterns("README.md"))
        configuration = Path(scratch) / "mkdocs.yml"
        text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        if page is None:
            text = re.sub(r"^ *- Demo page:.*\n", "", text, flags=re.MULTILINE)
        if project:
            text += f"repo_url: {project}\n"
        configuration.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        command += ["--config-file", str(configuration), "--site-dir", str(Path(output).resolve())]
        # Material announces other projects on each build.
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
        subprocess.run(command, check=True, env=quiet)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    build(*sys.argv[1:], project=os.environ.get("PROJECT_URL", "").rstrip("/"))
    print(f"{sys.argv[1]}: python3 -m http.server -d {sys.argv[1]}")
