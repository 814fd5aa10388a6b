"""Names of the watched calls, read from the library's own table."""

from __future__ import annotations

import functools
import re

from topolane.mpi.build import SOURCES


@functools.cache
def names() -> dict[int, str]:
    """The name of each call, such as `MPI_Send`, by its number in the protocol."""
    table = (SOURCES / "calls.h").read_text(encoding="utf-8")
    return {int(number): f"MPI_{name}" for number, name in re.findall(r"CALL\((\d+), (\w+)\)", table)}
