"""What a log says of each job that decides nothing: its partition, and what kept it waiting."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane.units import clean

if TYPE_CHECKING:
    from topolane._engine import Workload


@dataclasses.dataclass(frozen=True)
class Details:
    """A job's details in a log. Missing details are empty or False."""

    partition: str = ""
    is_held: bool = False
    """Whether the job became eligible only after its submission."""
    is_reserved: bool = False
    is_limited: bool = False
    """Whether a limit of its QOS, its association or its array kept the job waiting."""


UNKNOWN = Details()


def of(workload: Workload) -> dict[int, Details]:
    """The details of the jobs of a log in SWF, CSV or as sacct prints it, by their ids."""
    places, rows = workload.details()
    kinds = [Details(clean(partition), *others) for partition, *others in rows]
    return {id: kinds[place] for id, place in zip(workload.columns()["id"].tolist(), places.tolist())}
