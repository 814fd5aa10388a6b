"""Explains rankfiles that Open MPI refuses without a message."""

from __future__ import annotations

import itertools
import os
import re
import socket
from collections.abc import Sequence

OPTIONS = ("-rf", "--rankfile", "-rankfile")
_LINE = re.compile(r"\s*rank\s+\d+\s*=\s*(\S+)\s+slots?\s*=\s*(\d+(?:[-,]\d+)*)\s*$")


def suspicion(command: Sequence[str]) -> str | None:
    """What may be wrong with the rankfile of a failed launch command; None if it names no rankfile.

    Slots are numbers of cores. Only the cores of this host can be checked.
    """
    name = next((after for word, after in itertools.pairwise(command) if word in OPTIONS), None)
    if name is None:
        return None
    why = "Open MPI ends without a message if a rankfile names slots that a host does not have"
    return f"{_missing_slot(name) or name}: {why}"


def _missing_slot(name: str) -> str | None:
    """The first line with a slot that this host does not have."""
    here, cores = {"localhost", socket.gethostname()}, os.cpu_count() or 1
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return None
    for number, line in enumerate(lines, 1):
        found = _LINE.match(line)
        slot = max(map(int, re.findall(r"\d+", found[2]))) if found else 0
        if found and found[1] in here and slot >= cores:
            return f"{name}:{number}: slot {slot}: this host has slots 0 to {cores - 1}"
    return None
