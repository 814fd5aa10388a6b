"""Waiting tasks of a job array, which Slurm keeps in one record."""

from __future__ import annotations

import re

RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def tasks_of(text: str) -> list[int]:
    """The numbers in Slurm's text of them, such as `0,2-3%2` or `1-9:4`, in ascending order."""
    tasks: set[int] = set()
    for part in text.partition("%")[0].strip("[]").split(","):
        match = RANGE.fullmatch(part.strip())
        if match is None:
            continue  # cut short by Slurm where there are very many ("...")
        first = int(match[1])
        tasks.update(range(first, int(match[2] or first) + 1, int(match[3] or 1)))
    return sorted(tasks)
