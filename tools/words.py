"""Refuses words that readers have to decode, in names, comments, messages and pages. CONTRIBUTING.md says what to write.

words.py [PATH...]    files or folders of the tree; without a path, all tracked files
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]

INSTEAD = {
    "nobody": "no user, no job, nothing",
    "somebody": "a user, a job, a process",
    "anybody": "any user, any job",
    "anew": "again, new",
    "beside": "next to, in addition to, compared with, while",
    "made up": "synthetic, drawn",
    "left out": "skipped",
    "so many": "the number",
    "as many as": "the number",
    "so much": "the amount",
    "told": "says, reports, distinguishes",
    "tells": "says, reports, distinguishes",
}
WORDS = re.compile(
    rf"(?<![a-z])({'|'.join(word.replace(' ', '[ _-]') for word in INSTEAD)})(?![a-z])", re.IGNORECASE
)
KEPT = re.compile(r"\w*left_out\w*|[\"'`.]beside\b|\bbeside\s*[:=]|^\s*\"nobody\",$")
"""Keys and fields in files and programs of users (`left_out`, `beside`), and a Unix user."""
UNREAD = (
    "tools/words.py",
    ".lock",
    ".json",
    ".svg",
    ".ipynb",
    ".txt",
    ".swf",
    ".csv",
    ".gz",
    ".sum",
    ".png",
)


def faults(path: Path) -> list[str]:
    """A line for each refused word in a file: path, line, the word and what to write instead."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in WORDS.finditer(KEPT.sub("", line)):
            word = re.sub("[_-]", " ", match[0].lower())
            found.append(f"{path.relative_to(TREE)}:{number}: {match[0]!r}: write {INSTEAD[word]}")
    return found


def main(paths: list[str]) -> int:
    """Prints the faults. Returns the exit code."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *paths], cwd=TREE, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name and not name.endswith(UNREAD)]
    found = [fault for name in names if (TREE / name).is_file() for fault in faults(TREE / name)]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
