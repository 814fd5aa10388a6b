"""Summarises a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from topolane.mpi.matrix import FIGURES, KINDS, Recorded


def summary(recorded: Recorded, pairs: int = 5) -> dict[str, Any]:
    """Numbers of a run: totals, by kind, across the halves of its ranks, by pair and by call."""
    about = recorded.about
    seconds = max(about.seconds, default=0.0)
    spent = sum(about.seconds) or 1.0
    apart = (recorded.sender < about.ranks // 2) != (recorded.receiver < about.ranks // 2)
    size = recorded.total("bytes")
    heaviest = np.argsort(-size, kind="stable")[:pairs]
    totals = {name: recorded.total(name) for name in FIGURES}
    return {
        "program": about.program,
        "name": about.name,
        "mpi": about.mpi,
        "ranks": about.ranks,
        "hosts": len({host for host in about.hosts if host}),
        "seconds": seconds,
        "in_mpi": sum(about.in_mpi) / spent,
        "skew": sum(about.skew) / spent,
        "unfinished": about.unfinished,
        "all": {name: int(total.sum()) for name, total in totals.items()},
        "kinds": {
            kind: {name: int(recorded.counts[:, at, place].sum()) for place, name in enumerate(FIGURES)}
            for at, kind in enumerate(KINDS)
        },
        "halves": {name: int(total[apart].sum()) for name, total in totals.items()},
        "halves_bytes_per_second": float(size[apart].sum()) / seconds if seconds > 0 else 0.0,
        "pairs": [
            {
                "from": int(recorded.sender[at]),
                "to": int(recorded.receiver[at]),
                **{name: int(total[at]) for name, total in totals.items()},
            }
            for at in heaviest
        ],
        "calls": [
            {"call": call, "calls": calls, "bytes": bytes_, "seconds": time}
            for call, (calls, bytes_, time) in sorted(about.calls.items(), key=lambda one: -one[1][2])
        ],
    }
