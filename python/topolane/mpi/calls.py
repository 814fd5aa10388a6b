"""Names of the calls that the library watches, from its own table."""

from __future__ import annotations

import functools
import re

from topolane.mpi.build import SOURCES


@functools.cache
def names() -> dict[int, str]:
    """`MPI_Send` and so on, by the numbers of the protocol."""
    table = (SOURCES / "calls.h").read_text(encoding="utf-8")
    return {int(number): f"MPI_{name}" for number, name in re.findall(r"CALL\((\d+), (\w+)\)", table)}
