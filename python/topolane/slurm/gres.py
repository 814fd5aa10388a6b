"""Generic resources as Slurm writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from topolane.slurm.records import Gres

NAME = r"[\w./-]+(?::(?!\d+(?![\w./-]))\w[\w./-]*)?"
"""A name, and perhaps a type, which is no number: that would be the count."""
OPTION = re.compile(rf"(?:gres[:/])?({NAME})(?:[:=](\d+))?", re.ASCII)


def requested(option: str, *, per_process: bool) -> Gres | None:
    """`gres:gpu:h100:2` of `--gres` and its kin; None for what is not a counted resource."""
    found = OPTION.fullmatch(option)
    if found is None or found[1] == "cpu":
        return None
    return Gres(option, found[1], int(found[2] or 1), per_process)


def of_node(gres: str) -> tuple[tuple[str, int], ...]:
    """`gpu:h100:8(S:0-1),nic:2` of a node, by name. Resources without a count are skipped."""
    items = re.sub(r"\([^)]*\)", "", gres).split(",")
    found: dict[str, int] = {}
    for item in items:
        one = None if "no_consume" in item else requested(item, per_process=False)
        if one is not None:
            found[one.name] = found.get(one.name, 0) + one.count
    return tuple(sorted(found.items()))


def held(nodes: Sequence[str], tres: str, count: int) -> tuple[tuple[str, int], ...]:
    """The most that a job holds of one of its nodes.

    Slurm gives it for each node (`gpu:h100:2(IDX:0-1)`). Otherwise the job's sums (`cpu=4,gres/gpu=8`) are spread evenly over
    its `count` nodes. Types count only if all nodes have them.
    """
    each = [dict(of_node(one)) for one in nodes if one]
    if not each:
        return tuple(sorted((name, -(-held // max(count, 1))) for name, held in _in_tres(tres)))
    if any(one.keys() != each[0].keys() for one in each):
        each = [_without_types(one) for one in each]
    names = {name for one in each for name in one}
    return tuple(sorted((name, max(one.get(name, 0) for one in each)) for name in names))


def _without_types(counts: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in counts.items():
        bare = name.partition(":")[0]
        found[bare] = found.get(bare, 0) + count
    return found


def _in_tres(tres: str) -> Iterator[tuple[str, int]]:
    for item in tres.split(","):
        if item.startswith("gres/") and (one := requested(item, per_process=False)) is not None:
            yield one.name, one.count
