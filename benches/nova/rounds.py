"""Isolated groups that are requested of several schedulers at once: python benches/nova/rounds.py.

Each round asks for groups of 7, 7 and 4 servers on 3 pods of 8 hosts, each of another scheduler process. In every fourth
round one of these processes is killed. The processes run Nova's own objects and databases with the filter and the
weigher; Placement is a table. Exit code 1 if two groups share a link, or if a group is refused: there is room for all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/nova"))

from schedulers import SIZES, Schedulers

KILLED_EVERY = 4


def main() -> int:
    """Prints how the rounds ended."""
    parser = argparse.ArgumentParser(description="Request groups of several schedulers at once.")
    parser.add_argument("--rounds", type=int, default=200, metavar="N")
    parser.add_argument("--schedulers", type=int, default=12, metavar="N", help="processes (default: 12)")
    parser.add_argument("--alone", action="store_true", help="the schedulers do not share claims")
    parser.add_argument(
        "--api",
        metavar="URL",
        help="an empty database for Nova's API, such as one of MariaDB (default: SQLite)",
    )
    asked = parser.parse_args()
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        with Schedulers(
            asked.schedulers, Path(directory), asked.api, share_claims=not asked.alone
        ) as schedulers:
            for number in range(asked.rounds):
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
        f"{asked.rounds} rounds of {len(SIZES)} groups, {asked.schedulers} schedulers: shared links in {ends['shared']} rounds, "
        f"{ends['refused']} groups refused, {ends['killed']} lost with their scheduler"
    )
    return int(ends["shared"] > 0 or ends["refused"] > 0)


if __name__ == "__main__":
    sys.exit(main())
