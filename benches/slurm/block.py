"""Compares policy slurm-block with a running slurmctld with topology/block: do they choose the same nodes for
the same jobs in the same states?

Real slurmds, random blocks and block sizes, nodes out of service, jobs that hold nodes. Every decision is a
job that Slurm starts at once or refuses. docs/benchmarks/slurm.md describes the measurements.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from block_states import Ask, Layout, Slurm, write
from live_cluster import running
from measure import Options, Result, Row
from slurm_sites import PREFIX, ready, say

TARGET = 99.0
"""The least percentage of equal decisions."""


def measure(options: Options) -> Result:
    """Asks both systems and compares the answers."""
    ready(options.nodes)
    rng = random.Random(options.seed)
    recorded: list[tuple[Layout, list[Ask]]] = []
    # Its sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as scratch:
        with running(options.nodes, Path(scratch) / "slurm", "--prefix", PREFIX) as up:
            slurm = Slurm(up)
            for number in range(options.layouts):
                layout = Layout.drawn(options.nodes, rng)
                say(
                    f"layout {number + 1} of {options.layouts}: {len(layout.blocks)} blocks, sizes {layout.sizes}"
                )
                slurm.begin(layout)
                recorded.append((layout, list(slurm.asks(layout, options.asks, rng))))
    if options.record:
        write(options.record, recorded)
    rows, differing = compare(recorded)
    for layout, ask, ours in differing:
        print(f"{layout.facts()} {ask.facts()}: ours {ours:x}")
    return Result(rows, {"differing": [[layout.facts(), ask.facts()] for layout, ask, _ in differing]})


def compare(
    recorded: Sequence[tuple[Layout, Sequence[Ask]]],
) -> tuple[list[Row], list[tuple[Layout, Ask, int]]]:
    """The figures, and the decisions that differ, with the engine's answer."""
    asked: Counter[str] = Counter()
    same: Counter[str] = Counter()
    differing = []
    for layout, asks in recorded:
        machine = layout.machine()
        for ask in asks:
            ours = ask.ours(machine)
            kinds = ("all", ask.kind())
            asked.update(kinds)
            if ours == ask.chosen:
                same.update(kinds)
            else:
                differing.append((layout, ask, ours))
    rows = [
        Row(
            "same nodes",
            f"{kind}: {same[kind]:,} of {asked[kind]:,} decisions",
            "%",
            (100 * same[kind] / asked[kind],),
            TARGET if kind == "all" else None,
            more_is_better=True,
        )
        for kind in ("all", *sorted(asked.keys() - {"all"}))
    ]
    return rows, differing
