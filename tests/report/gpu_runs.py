"""Synthetic runs on small machines with GPUs, for the report: jobs on whole nodes, on some GPUs, and on parts of one."""

from __future__ import annotations

import polars
from schedules import NUMBERS, finish
from topolane.report import MachinePicture, ReportedRun, Subtree

NODE = {"cores": 32, "memory": 1024, "gpu": 4}


def racks(count: int = 3, nodes: int = 3, *, domains: bool = True, gpus: int = 4) -> MachinePicture:
    """Racks of nodes with GPUs, each a leaf and a domain, under one switch."""
    ends = range(0, count * nodes, nodes)
    leaves = [Subtree(f"leaf {index}", start, start + nodes) for index, start in enumerate(ends)]
    return MachinePicture(
        count * nodes,
        [leaves, [Subtree("all", 0, count * nodes)]],
        [(f"rack{index}", range(start, start + nodes)) for index, start in enumerate(ends)]
        if domains
        else (),
        [{**NODE, "gpu": gpus}] * (count * nodes),
    )


def gpu_run(
    *held: tuple[str, str, str],
    nodes: int = 9,
    moves: polars.DataFrame | None = None,
    failures: polars.DataFrame | None = None,
) -> ReportedRun:
    """Jobs 1, 2, ... from 0 s to 600 s, each (nodes, GPUs of each node, what it takes of each), as in `jobs.csv`."""
    rows = [
        (number, 0.0, 0.0, 600.0, 0.0, 600.0, 600.0, 1, 1.0, 0.0, 0.0, 0.0, 0, on, "COMPLETED_SUCCESSFULLY")
        for number, (on, _, _) in enumerate(held, start=1)
    ]
    jobs = polars.DataFrame(rows, schema=NUMBERS, orient="row").with_columns(
        gpus=polars.Series([gpus for _, gpus, _ in held], dtype=polars.String),
        taken=polars.Series([taken for _, _, taken in held], dtype=polars.String),
    )
    run = finish("run", jobs, nodes, 3, {})
    return ReportedRun(**{**vars(run), "moves": moves, "failures": failures})
