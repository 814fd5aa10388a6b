"""The least share of full bandwidth that a job accepts on links of its own: its user's wish, or its partition's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from topolane._engine import InputError, linking_policies
from topolane.slurm.candidates import Unfit
from topolane.slurm.comments import users
from topolane.slurm.records import Job

WISH = re.compile(r"(?<![^\s,;])phi=([^\s,;]*)")
"""A word of a user's comment."""
SHOWN = 20
"""So much of a wrong value is told."""


def phi_of(job: Job, defaults: Mapping[str, float]) -> float | None:
    """The share, above 0 and below 1; None for full bandwidth.

    `phi=0.5` as a word of its user's comment outranks `defaults`, by partition; of several partitions
    that which asks for most counts, one without a default asking for all. Raises Unfit for a wish that is none.
    """
    wishes = dict.fromkeys(WISH.findall(users(job.comment)))
    if len(wishes) > 1:
        raise Unfit("its comment has more than one phi: leave one")
    if not wishes:
        phi = max((defaults.get(name, 1.0) for name in job.partitions), default=1.0)
    else:
        (text,) = wishes
        phi = _number(text)
    return phi if phi < 1.0 else None


def _number(text: str) -> float:
    try:
        phi = float(text.replace("_", "x"))
    except ValueError:
        phi = 0.0
    if not 0.0 < phi <= 1.0:
        shown = text if len(text) <= SHOWN else text[:SHOWN] + "..."
        raise Unfit(f"phi={shown} in its comment: phi is a number above 0 and up to 1")
    return phi


def heeds_phi(policy: str) -> bool:
    """Whether the policy of that name places jobs by their phi."""
    return dict(linking_policies()).get(policy, False)


def read_phi(path: object, value: object, partitions: tuple[str, ...], policy: str) -> dict[str, float]:
    """The setting `phi`, one number or a table by partition, as a table. Raises InputError."""
    if not heeds_phi(policy):
        able = ", ".join(name for name, heeds in linking_policies() if heeds)
        raise InputError(f"{path}: phi: policy {policy!r} does not place by it; there is {able}")
    table: dict[Any, Any] = value if isinstance(value, dict) else dict.fromkeys(partitions, value)
    for name, phi in table.items():
        where = f"phi: {name}" if isinstance(value, dict) else "phi"
        if name not in partitions:
            raise InputError(f"{path}: {where} is not among the partitions {', '.join(partitions)}")
        if isinstance(phi, bool) or not isinstance(phi, (int, float)) or not 0 < phi <= 1:
            raise InputError(f"{path}: {where} must be a number above 0 and up to 1, not {phi!r}")
    return {name: float(phi) for name, phi in table.items()}
