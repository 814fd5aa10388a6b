"""All scenarios by name, in the order of the table."""

from __future__ import annotations

from collections.abc import Callable

from observed import Observed

Scenario = Callable[[Observed], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function
