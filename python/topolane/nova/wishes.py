"""What a group of servers asks for: by a scheduler hint, or by its flavor's extra specs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

PLACEMENTS = ("compact", "isolated", "spread")
PLACEMENT = "topolane:placement"
TRAFFIC = "topolane:traffic"
SIZE = "topolane:size"
LARGEST = 1000
"""The largest size: any user may give one, and what the scheduler computes grows with its square."""
PROFILE_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
"""A traffic profile's name is part of a path: no slashes, no leading dots."""


@dataclasses.dataclass(frozen=True)
class Wish:
    """How a group wants to be placed."""

    placement: str | None
    """One of `PLACEMENTS`; None to be left to Nova."""
    traffic: str | None = None
    """The name of its traffic profile."""
    size: int | None = None
    """How many members it is going to have, where they are not all asked for at once."""
    problem: str | None = None
    """What cannot be understood, in one sentence: nothing is to be placed on a guess."""


def wish_of(hints: Any, extra_specs: Any, default: str = "none") -> Wish:
    """What hints and extra specs ask for; hints, which are the user's own, go before the flavor's."""
    known = (PLACEMENT, TRAFFIC, SIZE)
    keys = [key for source in (hints, extra_specs) if isinstance(source, Mapping) for key in source]
    if unknown := [key for key in keys if key.startswith("topolane:") and key not in known]:
        return Wish(None, problem=f"{unknown[0]!r} is none of {', '.join(known)}")
    placement, traffic, asked = (_asked(key, hints, extra_specs) for key in known)
    if asked is not None and not (re.fullmatch("[1-9][0-9]{0,4}", asked) and int(asked) <= LARGEST):
        return Wish(None, problem=f"{SIZE}={asked!r} is not a number from 1 to {LARGEST}")
    size = int(asked) if asked is not None else None
    if traffic is not None and not re.fullmatch(PROFILE_NAME, traffic):
        return Wish(None, problem=f"{TRAFFIC}={traffic!r} is not the name of a profile")
    if placement is None:
        # Who names a profile or a size wants it used.
        placement = "compact" if (traffic or size) and default == "none" else default
        return Wish(None if placement == "none" else placement, traffic, size)
    if placement == "none":
        return Wish(None)
    if placement not in PLACEMENTS:
        names = ", ".join(PLACEMENTS)
        return Wish(None, problem=f"{PLACEMENT}={placement!r} is none of {names}, none")
    return Wish(placement, traffic, size)


def _asked(key: str, *sources: Any) -> str | None:
    for source in sources:
        value = source.get(key) if isinstance(source, Mapping) else None
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if value is not None:
            return str(value)
    return None
