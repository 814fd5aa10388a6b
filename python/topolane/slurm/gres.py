"""Generic resources as Slurm writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    """`gpu:h100:8(S:0-1),nic:2` of a node, by name. What is not counted is left out."""
    items = re.sub(r"\([^)]*\)", "", gres).split(",")
    found: dict[str, int] = {}
    for item in items:
        one = None if "no_consume" in item else requested(item, per_process=False)
        if one is not None:
            found[one.name] = found.get(one.name, 0) + one.count
    return tuple(sorted(found.items()))


def held(tres: str, nodes: int) -> tuple[tuple[str, int], ...]:
    """`cpu=4,gres/gpu=8,gres/gpu:h100=8` of a job on so many nodes, as the most that one of them may give evenly."""
    return tuple(sorted((name, -(-count // max(nodes, 1))) for name, count in _in_tres(tres)))


def _in_tres(tres: str) -> Iterator[tuple[str, int]]:
    for item in tres.split(","):
        if item.startswith("gres/") and (one := requested(item, per_process=False)) is not None:
            yield one.name, one.count
