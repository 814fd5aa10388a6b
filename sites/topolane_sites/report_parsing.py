"""Parses hosts and guests in reports and clusters. Invalid values raise ValueError with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topolane.reading import MOST_CORES, is_name

from topolane_sites.model import Guest
from topolane_sites.processor import LEAST_SPEED, MOST_SPEED, instructions

MOST_GUESTS = 1_000
"""Most guests of one host."""
MOST_TUNNELS = 100
"""Most tunnels of one host."""
MOST_KNOWN = 100_000
"""Most guests of a manager."""
_MOST_BYTES = 1e15
"""Most bytes a second of a guest's network."""


def reported_guest(fields: Mapping[str, Any], host: str | None) -> Guest:
    """The guest in a report, which runs on that host. Also raises KeyError and TypeError."""
    dirty = fields.get("dirty")
    if dirty is not None and not 0 <= dirty <= _MOST_BYTES:
        raise ValueError(f"dirty must be a number from 0 to {_MOST_BYTES:g}, not {dirty!r:.80}")
    return Guest(
        name=reported_name(fields),
        cluster=str(fields.get("cluster") or ""),
        cores=positive(fields, "cores", MOST_CORES),
        memory=positive(fields, "memory"),
        host=host,
        address=str(fields.get("address") or ""),
        dirty=None if dirty is None else float(dirty),
        features=reported_features(fields),
    )


def check_measured(report: Mapping[str, Any]) -> None:
    """Checks what a host's report says of speed and use. Raises ValueError with a sentence."""
    speed = report.get("speed", 1.0)
    if not _is_number(speed) or not LEAST_SPEED <= speed <= MOST_SPEED:
        raise ValueError(f"speed must be a number from {LEAST_SPEED:g} to {MOST_SPEED:g}, not {speed!r}")
    reported_features(report)
    _check_use(report, "other_load", MOST_CORES)
    for guest in report.get("guests", ()):
        for key, most in (("cpu", MOST_CORES), ("sent", _MOST_BYTES), ("received", _MOST_BYTES)):
            _check_use(guest, key, most)


def reported_features(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The instruction sets in a report."""
    value = fields.get("features", ())
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"features must be a list of words, not {value!r:.80}")
    return instructions(value)


def _check_use(fields: Mapping[str, Any], key: str, most: float) -> None:
    value = fields.get(key, 0.0)
    if not _is_number(value) or not 0 <= value <= most:
        raise ValueError(f"{key} must be a number from 0 to {most:g}, not {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
