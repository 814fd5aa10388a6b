"""Requests isolated groups from several schedulers at once.

Each round requests groups of 7, 7 and 4 servers on 3 pods of 8 hosts, each from another scheduler process. In
every fourth round one of these processes is killed. The processes run Nova's own objects and databases with
the filter and the weigher; Placement is a table. The exit code is 1 if two groups share a link, or if a group
is refused although there is room for all.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from measure import Options, Result
from schedulers import SIZES, Schedulers

KILLED_EVERY = 4


def measure(options: Options) -> Result:
    """Prints how the rounds ended."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        with Schedulers(
            options.schedulers, Path(directory), options.api, share_claims=not options.alone
        ) as schedulers:
            for number in range(options.rounds):
                end = schedulers.round(kill=number % KILLED_EVERY == KILLED_EVERY - 1)
                ends["shared"] += end.shared
                ends["refused"] += end.refused
                ends["killed"] += end.lost
                if end.shared or end.refused:
                    print(
                        f"round {number + 1}: shared links: {end.shared}, refused groups: {end.refused}",
                        flush=True,
                    )
    print(
        f"{options.rounds} rounds of {len(SIZES)} groups, {options.schedulers} schedulers: shared links in {ends['shared']} rounds, "
        f"{ends['refused']} groups refused, {ends['killed']} lost with their scheduler"
    )
    return Result(facts=ends, failed=ends["shared"] > 0 or ends["refused"] > 0)
