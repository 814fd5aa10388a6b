"""Types of options whose values are names that the engine knows: shells complete them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from click.types import StringParamType

from topolane import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem


class Name(StringParamType):
    """A name, or several separated by commas. Any text is taken; the command refuses names that it does not know."""

    def __init__(self, known: Callable[[], Sequence[tuple[str, str]]], *, several: bool = False) -> None:
        self.known = known
        self.several = several
        self.name = "names" if several else "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin like the last one; the shell's own files if there is none."""
        from click.shell_completion import CompletionItem

        before, comma, begun = incomplete.rpartition(",") if self.several else ("", "", incomplete)
        found = [
            CompletionItem(f"{before}{comma}{name}", help=summary)
            for name, summary in self.known()
            if name.startswith(begun) and re.fullmatch(r"[\w.+-]+", name)
        ]
        return found or [CompletionItem(incomplete, type="file")]


def _policies() -> list[tuple[str, str]]:
    from topolane import policy

    return [*_engine.policies(), *((name, "of a plug-in") for name in sorted(policy.plugins()))]


def _patterns() -> list[tuple[str, str]]:
    return [(name, summary) for name, summary, _ in _engine.patterns()]


def _scenarios() -> list[tuple[str, str]]:
    return [(name, "") for name in ("none", "5", "10", "20", "v1", "v2")]


MACHINE = Name(_engine.presets)
WORKLOAD = Name(_engine.workload_presets)
POLICY = Name(_policies)
POLICIES = Name(_policies, several=True)
QUEUE = Name(_engine.queues)
QUEUES = Name(_engine.queues, several=True)
SCENARIO = Name(_scenarios)
SCENARIOS = Name(_scenarios, several=True)
ROUTING = Name(_engine.routings)
MODEL = Name(_engine.models)
PATTERN = Name(_patterns)
PATTERNS = Name(_patterns, several=True)
