"""The minimum bandwidth share of a job on dedicated links: its user's request, or its partition's default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from topolane._engine import linking_policies
from topolane.parsing import shown
from topolane.reading import Table
from topolane.slurm.candidates import IneligibleJobError
from topolane.slurm.comments import user_comment
from topolane.slurm.records import Job

REQUEST = re.compile(r"(?<![^\s,;])(min-bandwidth|phi)=([^\s,;]*)")
"""A word of a user's comment; `phi` is the former name."""
SHOWN = 20
"""How many characters of a wrong value an error shows."""


def min_bandwidth_of(job: Job, defaults: Mapping[str, float]) -> float | None:
    """The share, above 0 and below 1; None for full bandwidth.

    The word `min-bandwidth=0.5` in the user's comment overrides `defaults`, which are by partition. If a job
    names several partitions, the largest default counts. A partition without a default asks for full
    bandwidth. Raises IneligibleJobError for any other value.
    """
    requested = {text: name for name, text in REQUEST.findall(user_comment(job.comment))}
    if len(requested) > 1:
        raise IneligibleJobError("its comment has more than one min-bandwidth: keep one")
    if not requested:
        share = max((defaults.get(name, 1.0) for name in job.partitions), default=1.0)
    else:
        ((text, name),) = requested.items()
        share = _number(name, text)
    return share if share < 1.0 else None


def _number(name: str, text: str) -> float:
    try:
        share = float(text.replace("_", "x"))
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        cut = text if len(text) <= SHOWN else text[:SHOWN] + "..."
        raise IneligibleJobError(
            f"{name}={cut} in its comment: {name} must be a number above 0 and at most 1"
        )
    return share


def heeds_min_bandwidth(policy: str) -> bool:
    """Whether the policy of that name uses a job's minimum bandwidth share."""
    return dict(linking_policies()).get(policy, False)


def read_min_bandwidth(table: Table, partitions: tuple[str, ...], policy: str) -> dict[str, float]:
    """The setting `min-bandwidth`, one number or a table by partition, as a table. Raises InputError."""
    key = "min-bandwidth"
    value = table.peek(key)
    if value is None:
        return {}
    if not heeds_min_bandwidth(policy):
        able = ", ".join(name for name, heeds in linking_policies() if heeds)
        raise table.refuse(key, f"is not used by policy {policy!r}; use policy {able}")
    if not isinstance(value, dict):
        return dict.fromkeys(partitions, _share(table, key))
    own = table.table(key)
    found = {name: _share(own, name) for name in partitions if own.peek(name) is not None}
    own.done()
    return found


def _share(table: Table, key: str) -> float:
    share = table.value(key)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise table.refuse(key, f"must be a number above 0 and at most 1, not {shown(share)}")
    return float(share)
