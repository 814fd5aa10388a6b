"""Values of slurm.conf by Slurm's own rules: comments, continued lines, blanks around `=`, quotes, and included files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from topolane import texts

PAIR = re.compile(r'([\w.]+)\s*[-+*/]?=\s*("[^"]*"(?=\s|$)|\S+)')
INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
MOST_FILES = 256


def value(path: Path, key: str) -> str | None:
    """The last value of a key, which counts; None if the file and those that it includes have none.

    Raises InputError for a file that cannot be read.
    """
    found = None
    for line in lines(path):
        for name, given in PAIR.findall(line):
            if name.lower() == key.lower():
                found = given[1:-1] if given.startswith('"') and given.endswith('"') else given
    return found


def lines(path: Path) -> Iterator[str]:
    """The lines of a file that hold anything, those of an included file in the place of its `Include`."""
    waiting = [iter(_joined(texts.read_text(path, texts.SMALL)))]
    files = 1
    while waiting:
        line = next(waiting[-1], None)
        if line is None:
            waiting.pop()
        elif (found := INCLUDE.match(line)) is None:
            yield line
        elif "*" not in found[1] and "%c" not in found[1] and files < MOST_FILES:
            files += 1
            waiting.append(iter(_joined(texts.read_text(path.parent / found[1], texts.SMALL))))


def _joined(text: str) -> Iterator[str]:
    before = ""
    for part in text.split("\n"):
        # A `#` after an odd number of backslashes is no comment.
        comment = re.search(r"(?<!\\)(?:\\\\)*#", part)
        line = before + (part if comment is None else part[: comment.end() - 1]).rstrip()
        if (len(line) - len(line.rstrip("\\"))) % 2:
            before = line[:-1]
            continue
        before = ""
        if line.strip():
            yield re.sub(r"\\(.)", r"\1", line)
    if before.strip():
        yield before
