"""Parses hosts and guests in reports and clusters. Invalid values raise ValueError with a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from topolane.reading import MOST_CORES, is_name
from topolane.sites.model import Guest

MOST_GUESTS = 1_000
"""Most guests of one host."""
MOST_KNOWN = 100_000
"""Most guests of a manager."""


def reported_guest(fields: Mapping[str, Any], host: str | None) -> Guest:
    """The guest in a report, which runs on that host. Also raises KeyError and TypeError."""
    dirty = fields.get("dirty")
    if dirty is not None and not (math.isfinite(dirty) and dirty >= 0):
        raise ValueError(f"dirty must be a number from 0, not {dirty!r}")
    return Guest(
        name=reported_name(fields),
        cluster=str(fields.get("cluster") or ""),
        cores=positive(fields, "cores", MOST_CORES),
        memory=positive(fields, "memory"),
        host=host,
        address=str(fields.get("address") or ""),
        dirty=None if dirty is None else float(dirty),
    )


def reported_name(fields: Mapping[str, Any]) -> str:
    """The name in a report."""
    value = fields["name"]
    if not is_name(value):
        raise ValueError(
            f"name must be a word without slashes that begins with neither . nor -, not {value!r}"
        )
    return str(value)


def positive(fields: Mapping[str, Any], key: str, most: int = (1 << 62) - 1) -> int:
    """A positive whole number."""
    value = fields[key]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise ValueError(f"{key} must be a whole number from 1 to {most}, not {value!r}")
    return value
