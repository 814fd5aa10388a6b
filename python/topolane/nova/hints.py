"""Placement hints of server groups, from scheduler hints or the flavor's extra specs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

PLACEMENTS = ("compact", "isolated", "spread")
PLACEMENT = "topolane:placement"
TRAFFIC = "topolane:traffic"
SIZE = "topolane:size"
IDENTICAL = "topolane:identical"
ALIKE = ("generation", "cpu")
"""The degrees of equality that a group can request for its hosts."""
LARGEST = 1000
"""The largest size that a hint may give. Any user may set it, and the scheduler's work grows with its square.
"""
PROFILE_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
"""A traffic profile's name is part of a path: no slashes, no leading dots."""


@dataclasses.dataclass(frozen=True)
class PlacementHint:
    """The placement that a group requests."""

    placement: str | None
    """One of `PLACEMENTS`; None if Nova decides alone."""
    traffic: str | None = None
    """The name of its traffic profile."""
    size: int | None = None
    """The final number of members, if they are not all requested at once."""
    identical: str | None = None
    """How similar the hosts must be: one of `ALIKE` or `none`; None for the operator's default."""
    problem: str | None = None
    """A sentence about an invalid hint. A group with such a hint is refused."""


def hint_of(hints: Any, extra_specs: Any, default: str = "none") -> PlacementHint:
    """The hint in scheduler hints and extra specs. The user's scheduler hints override the flavor's extra
    specs.
    """
    known = (PLACEMENT, TRAFFIC, SIZE, IDENTICAL)
    keys = [key for source in (hints, extra_specs) if isinstance(source, Mapping) for key in source]
    if unknown := [key for key in keys if key.startswith("topolane:") and key not in known]:
        return PlacementHint(None, problem=f"{unknown[0]!r} is none of {', '.join(known)}")
    placement, traffic, asked, identical = (_asked(key, hints, extra_specs) for key in known)
    if asked is not None and not (re.fullmatch("[1-9][0-9]{0,4}", asked) and int(asked) <= LARGEST):
        return PlacementHint(None, problem=f"{SIZE}={asked!r} is not a number from 1 to {LARGEST}")
    size = int(asked) if asked is not None else None
    if traffic is not None and not re.fullmatch(PROFILE_NAME, traffic):
        return PlacementHint(None, problem=f"{TRAFFIC}={traffic!r} is not the name of a profile")
    if identical not in (None, "none", *ALIKE):
        return PlacementHint(None, problem=f"{IDENTICAL}={identical!r} is none of {', '.join(ALIKE)}, none")
    if placement is None:
        # Without a placement, a profile, a size or identical hosts ask for `compact`, or for the operator's default.
        asks = traffic or size or identical in ALIKE
        placement = "compact" if asks and default == "none" else default
    if placement == "none":
        return PlacementHint(None)
    if placement not in PLACEMENTS:
        names = ", ".join(PLACEMENTS)
        return PlacementHint(None, problem=f"{PLACEMENT}={placement!r} is none of {names}, none")
    return PlacementHint(placement, traffic, size, identical)


def _asked(key: str, *sources: Any) -> str | None:
    for source in sources:
        value = source.get(key) if isinstance(source, Mapping) else None
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if value is not None:
            return str(value)
    return None
