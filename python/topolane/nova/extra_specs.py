"""Validators of Topolane's extra specs for Nova's API, by the entry point nova.api.extra_spec_validators."""

from __future__ import annotations

from nova.api.validation.extra_specs import base

from topolane.nova.hints import (
    ALIKE,
    IDENTICAL,
    LARGEST,
    PLACEMENT,
    PLACEMENTS,
    PROFILE_NAME,
    SIZE,
    TRAFFIC,
)


def register() -> list[base.ExtraSpecValidator]:
    """The validators of the namespace topolane."""
    return [
        base.ExtraSpecValidator(
            name=PLACEMENT,
            description="How a server group of this flavor is placed on the network's tree.",
            value={"type": str, "enum": [*PLACEMENTS, "none"]},
        ),
        base.ExtraSpecValidator(
            name=TRAFFIC,
            description="The traffic profile of a server group of this flavor.",
            value={"type": str, "pattern": PROFILE_NAME},
        ),
        base.ExtraSpecValidator(
            name=SIZE,
            description="How many servers a group of this flavor is going to have.",
            value={"type": int, "min": 1, "max": LARGEST},
        ),
        base.ExtraSpecValidator(
            name=IDENTICAL,
            description="How alike the hosts of a server group of this flavor must be.",
            value={"type": str, "enum": [*ALIKE, "none"]},
        ),
    ]
