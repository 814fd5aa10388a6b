"""Matrices as `topolane mpi run` writes them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

KINDS = ",".join(
    f"{kind}_{one}"
    for kind in ("point_to_point", "modelled", "two_level", "one_sided")
    for one in ("messages", "bytes", "turns")
)


def write_matrix(
    file: Path,
    hosts: list[str],
    days_ago: float = 0.0,
    sent: Sequence[tuple[int, int, int]] = ((0, 1, 100),),
) -> None:
    """The matrix of a program called solver with a rank on each host. sent: sender, receiver and bytes."""
    ranks, none = len(hosts), [0.0] * len(hosts)
    about = {"program": "run-1", "name": "solver", "mpi": "MPICH", "ranks": ranks, "hosts": hosts}
    about |= {"seconds": [1.0] * ranks, "in_mpi": none, "skew": none, "calls": {}, "unfinished": []}
    lines = [f"# ranks: {ranks}", f"# entries: {len(sent)}", f"# topolane mpi: {json.dumps(about)}"]
    lines += [f"from,to,bytes,messages,turns,{KINDS}"]
    lines += [f"{one},{other},{size},1,1,1,{size},1,0,0,0,0,0,0,0,0,0" for one, other, size in sent]
    file.write_text("\n".join(lines) + "\n")
    written = time.time() - days_ago * 86_400.0
    os.utime(file, (written, written))
