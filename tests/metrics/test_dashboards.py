"""The dashboards hold what Grafana's own schema knows, by the library that Grafana generates from it."""

from __future__ import annotations

import enum
import importlib.util
import json
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from metrics_page import DRIVERS, dashboard_of

models = pytest.importorskip(
    "grafana_foundation_sdk.models.dashboard", reason="needs the Python package grafana-foundation-sdk"
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins


@pytest.fixture(params=DRIVERS)
def written(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The dashboard of a driver, as it is in its file."""
    register_default_plugins()
    return dashboard_of(request.param)


def lost(given: Any, kept: Any, where: str = "") -> Iterator[str]:
    """The places in a value that are not the same in another."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            yield from lost(value, kept[name], f"{where}.{name}") if name in kept else [f"{where}.{name}"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for at, (one, other) in enumerate(zip(given, kept)):
            yield from lost(one, other, f"{where}[{at}]")
    elif given != kept:
        yield where


def test_grafana_knows_every_field(written: dict[str, Any]) -> None:
    """Grafana's types, which keep only the fields that they know, keep all of a dashboard; unknown options would be lost."""
    read = models.Dashboard.from_json(written)
    assert list(lost(written, json.loads(JSONEncoder().encode(read)))) == []


def test_grafana_knows_every_kind_of_panel(written: dict[str, Any]) -> None:
    """Each panel is of a kind that Grafana brings with it."""
    for panel in written["panels"]:
        assert panel["type"].isalpha()
        assert importlib.util.find_spec(f"grafana_foundation_sdk.models.{panel['type']}"), panel["title"]


def unknown_words(value: Any, where: str = "dashboard") -> Iterator[str]:
    """The words in Grafana's types that are none of those that a field may have."""
    if isinstance(value, list):
        for one in value:
            yield from unknown_words(one, where)
    elif type(value).__module__.startswith("grafana_foundation_sdk."):
        hints = typing.get_type_hints(type(value))
        for name, held in vars(value).items():
            place = f"{where}.{name}"
            kinds = [
                kind
                for kind in (hints.get(name), *typing.get_args(hints.get(name)))
                if isinstance(kind, enum.EnumMeta)
            ]
            if (
                isinstance(held, str)
                and kinds
                and held not in {word.value for kind in kinds for word in kind}
            ):
                yield f"{place}: {held}"
            yield from unknown_words(held, place)


def test_words_are_those_that_grafana_knows(written: dict[str, Any]) -> None:
    """Colour modes, units of thresholds and the like have one of the words that Grafana's types list."""
    read = models.Dashboard.from_json(written)
    assert list(unknown_words(read)) == []
    panel = next(one for one in read.panels if one.type_val == "stat")
    panel.options.color_mode = "backgroud"
    assert list(unknown_words(read)) == ["dashboard.panels.options.color_mode: backgroud"]
