"""Targets and labels of images, from a text file.

A UTF-8 text file, one line an image: its relative path, a tab, its target, and optionally a tab
and an integer label. Without an alphabet the target is integers between spaces; with one it is
text, and each character becomes its place in the alphabet, counted from 1, so that 0 stays free
for CTC's blank. Empty lines are skipped; every image must have a line.

File systems and editors write one accented letter in two Unicode forms (NFC, NFD). A path without
a line of the same form takes the line of the other form.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from onemodel._common.describe import shown
from onemodel._common.integers import check_int32

__all__ = ["Target", "match_names", "read_labels"]

Target = tuple[tuple[int, ...], int]


def read_labels(path: Path, alphabet: str | None) -> dict[str, Target]:
    """Read a labels file as a dict from relative path to target and label.

    Raises:
        FileNotFoundError: no such file.
        TypeError: an alphabet that is no text.
        ValueError: not UTF-8, a line that does not hold what it should, a path that comes twice,
            an alphabet with a character twice; the message names the line.
    """
    symbols = None
    if alphabet is not None:
        if not isinstance(alphabet, str):
            raise TypeError(f"alphabet must be text, got {shown(alphabet)}")
        symbols = {character: place for place, character in enumerate(alphabet, start=1)}
        if len(symbols) != len(alphabet) or not alphabet:
            raise ValueError(f"alphabet must hold each character once, got {shown(alphabet)}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text, found {error}") from None
    targets: dict[str, Target] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        # Only line ends go: a target may begin or end with a space of its alphabet.
        line = line.removesuffix("\r")
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        name, *fields = line.split("\t")
        if not 1 <= len(fields) <= 2:
            raise ValueError(
                f"{where}: expected a path, a target and perhaps a label with tabs between, "
                f"found {len(fields) + 1} fields"
            )
        if name in targets:
            raise ValueError(f"{where}: expected each path once, found {name!r} again")
        try:
            label = check_int32("label", int(fields[1])) if len(fields) == 2 else 0
            target = _symbols(fields[0], symbols)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        targets[name] = target, label
    return targets


def match_names(
    names: Sequence[str], targets: Mapping[str, Target]
) -> tuple[dict[str, Target], list[str]]:
    r"""Give each name its target, in the same Unicode form or else in another.

    Returns:
        The targets by name, and the names for which there is none. A line serves one name.

    >>> composed, apart = "caf\u00e9.png", "cafe\u0301.png"
    >>> found, missing = match_names([apart, "tea.png"], {composed: ((1,), 0)})
    >>> found[apart], missing
    (((1,), 0), ['tea.png'])
    """
    found = {name: targets[name] for name in names if name in targets}
    others: dict[str, list[str]] = {}
    for line_name in targets:
        if line_name not in found:
            others.setdefault(unicodedata.normalize("NFC", line_name), []).append(line_name)
    missing = []
    for name in names:
        if name in found:
            continue
        candidates = others.pop(unicodedata.normalize("NFC", name), [])
        if len(candidates) == 1:
            found[name] = targets[candidates[0]]
        else:
            missing.append(name)
    return found, missing


def _symbols(text: str, symbols: dict[str, int] | None) -> tuple[int, ...]:
    if symbols is None:
        return tuple(check_int32("target", int(word)) for word in text.split())
    unknown = sorted(set(text) - symbols.keys())
    if unknown:
        raise ValueError(f"expected characters of the alphabet, found {unknown[0]!r}")
    return tuple(symbols[character] for character in text)
