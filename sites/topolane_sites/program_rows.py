"""Watched programs as rows of the database, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from topolane.mpi.counts import RankCounts, WatchedProgram
from topolane.mpi.window import Window

Row = dict[str, Any]


def program_row(program: WatchedProgram) -> Row:
    """A row of the table `program`."""
    return {
        "id": program.id,
        "name": program.name,
        "ranks": program.ranks,
        "started": program.started,
        "ended": program.ended,
        "mpi": program.mpi,
        "epoch": program.epoch,
        "sites": None if program.sites is None else program.sites.astype("<u2").tobytes(),
    }


def rank_rows(program: WatchedProgram, ranks: Iterable[int]) -> list[Row]:
    """Rows of the table `rank` for those ranks, as copies for another thread."""
    return [_rank_row(program, rank, program.of_rank[rank]) for rank in ranks]


def program_of(row: Row, ranks: Iterable[Row]) -> WatchedProgram:
    """The program of those rows. Its recent rates are unknown."""
    program = WatchedProgram(
        row["id"],
        row["name"],
        row["ranks"],
        row["started"],
        row["ended"],
        epoch=row["epoch"],
        sites=None if row["sites"] is None else np.frombuffer(row["sites"], "<u2"),
        mpi=row["mpi"],
    )
    for one in ranks:
        counts = program.rank(one["rank"])
        program.hosts[one["rank"]] = one["host"]
        counts.seconds, counts.in_mpi, counts.skew = one["seconds"], one["in_mpi"], one["skew"]
        counts.dropped, counts.gone = one["dropped"], one["gone"]
        lists = json.loads(one["lists"])
        counts.calls = {call: (calls, size, seconds) for call, calls, size, seconds in lists["calls"]}
        counts.windows = {name: Window(highest, int(holes, 16)) for name, highest, holes in lists["windows"]}
        counts.restore(np.frombuffer(one["keys"], "<u8"), np.frombuffer(one["sums"], "<u8"))
    return program


def _rank_row(program: WatchedProgram, rank: int, counts: RankCounts) -> Row:
    lists = {
        "calls": [(call, *figures) for call, figures in counts.calls.items()],
        "windows": [(name, one.highest, f"{one.holes:x}") for name, one in counts.windows.items()],
    }
    return {
        "program": program.id,
        "rank": rank,
        "host": program.hosts.get(rank, ""),
        "seconds": counts.seconds,
        "in_mpi": counts.in_mpi,
        "skew": counts.skew,
        "dropped": counts.dropped,
        "gone": counts.gone,
        "lists": json.dumps(lists),
        "keys": counts.keys.astype("<u8", copy=False).tobytes(),
        "sums": counts.sums.astype("<u8", copy=False).tobytes(),
    }
