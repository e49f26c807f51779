"""Writes the API reference as Markdown: a page for each public package, from the docstrings.

Compiled and Python classes alike are read by importing them, so that what is written is what
`help()` shows.
"""

import importlib
import inspect
import re

PACKAGES = (
    "onemodel",
    "onemodel.augment",
    "onemodel.datasets",
    "onemodel.image",
    "onemodel.transforms",
)
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$")
ENTRY = re.compile(r"^    (\S[^:]*): (.*)$")


def reference(package):
    """Return the page of a package: every public name, in alphabetical order."""
    module = importlib.import_module(package)
    parts = [f"# {package}", text_of(inspect.getdoc(module) or "")]
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            page = f"{value.__name__}.md"
            parts.append(f"## {name}\n\nA package of its own: [{value.__name__}]({page}).")
        else:
            parts += described(name, value, "##")
            parts += members(name, value) if inspect.isclass(value) else []
    return "\n\n".join(part for part in parts if part) + "\n"


def members(owner, value):
    """Describe the public methods and properties of a class that have a text of their own."""
    for name in sorted(dir(value)):
        member = inspect.getattr_static(value, name)
        if name.startswith("_") or isinstance(member, int | str | type):
            continue
        if isinstance(member, staticmethod | classmethod):
            member = getattr(value, name)
        if inspect.getdoc(member):
            yield from described(f"{owner}.{name}", member, "###")


def described(title, value, level):
    """Return the heading, the signature and the text of one name."""
    text = inspect.getdoc(value) or ""
    first, _, rest = text.partition("\n")
    if first.startswith(f"{title.rpartition('.')[2]}("):
        shown, text = first, rest.strip("\n")  # as Cython writes it
    else:
        shown = signature(title.rpartition(".")[2], value)
    code = f"```python\n{shown}\n```" if shown else ""
    return [f"{level} {title}", code, text_of(text)]


def signature(name, value):
    """Return how it is called, without types; an empty text for what is not called."""
    if not callable(value):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
        if parameter.name != "self"
    ]
    empty = inspect.Signature.empty
    return f"{name}{found.replace(parameters=bare, return_annotation=empty)}"


def text_of(docstring):
    """Turn a docstring into Markdown: sections into lists, examples into code."""
    lines, section, example = [], False, False
    for line in docstring.splitlines():
        if example and not line.strip():
            lines.append("```")
            example = False
        if line.startswith(">>> ") and not example:
            lines += ["", "```pycon"]
            example, section = True, False
        if example:
            lines.append(line)
            continue
        heading = SECTION.match(line)
        entry = ENTRY.match(line) if section else None
        if heading:
            section = True
            lines += [f"**{heading[1]}**", ""]
        elif entry:
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        else:
            section = section and (not line or line.startswith(" "))
            lines.append(line.strip() if section else line)
    if example:
        lines.append("```")
    # reStructuredText's double backticks are Markdown's single ones.
    return re.sub(r"(?<!`)``(?!`)((?:[^`\n]|\n(?!\n))+)``(?!`)", r"`\1`", "\n".join(lines))
