"""How a shadow's starts and its summary are printed."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import click

from topolane import texts
from topolane._engine import InputError
from topolane.cli import common
from topolane.units import plural

if TYPE_CHECKING:
    from topolane.live.shadows import Side, Summary


def check_min_bandwidth(policy: str, share: float | None) -> None:
    """Raises InputError for a policy that does not heed the share."""
    from topolane._engine import linking_policies

    able = [name for name, heeds in linking_policies() if heeds]
    if share is not None and policy not in able:
        raise InputError(f"--min-bandwidth is not used by policy {policy!r}; use policy {', '.join(able)}")


def line(start: Mapping[str, Any], policy: str, system: str) -> str:
    """A start in a line."""
    at = time.strftime("%H:%M:%S", time.localtime(start["start"]))
    said = f"{at}  job {start['job']}: {system} {start['nodes'] or 'elsewhere'}"
    if "aph" in start:
        said += _measured(start)
    if start.get("plugin"):
        said += f" [plugin: {texts.printable(start['plugin'])}]"
    if "not_asked" in start:
        return f"{said}; not asked: {start['not_asked']}"
    answer = start["policy"]
    if "refusal" in answer:
        return f"{said}; {policy} would have waited, {answer['refusal']}: {answer['why']}"
    return f"{said}; {policy} {answer['nodes']}{_measured(answer)}"


def _measured(placed: Mapping[str, Any]) -> str:
    others = placed["shares_with"]
    shares = "no link shared" if not others else f"links shared with {plural(others, 'job')}"
    return f" ({placed['aph']:.2f} hops, {shares})"


class Watching(Protocol):
    """A shadow."""

    stopping: threading.Event

    def run(self) -> None: ...


def watch(seen: Watching, seconds: float | None) -> None:
    """Lets a shadow look until the time is over, at Ctrl-C or at SIGTERM."""
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: seen.stopping.set())
    timer = None if seconds is None else threading.Timer(seconds, seen.stopping.set)
    if timer is not None:
        timer.daemon = True
        timer.start()
    seen.run()


class Repeated(Protocol):
    """A log with every decision made once more."""

    summary: Summary
    differing: list[str]


def print_replay(found: Repeated, as_json: bool, system: str) -> None:
    """Prints what became of the decisions, and ends the program: with 1 if one differs."""
    if as_json:
        common.print_json({**found.summary.as_json(), "differing": found.differing})
    else:
        asked = found.summary.starts - found.summary.not_asked.total()
        same = "all the same" if not found.differing else f"{len(found.differing)} differ"
        click.echo(f"{plural(asked, 'decision')} made once more: {same}")
        for sentence in found.differing[:5]:
            click.echo(sentence)
        end(found.summary, as_json, system)
    sys.exit(1 if found.differing else 0)


def end(summary: Summary, as_json: bool, system: str, *, one_line: bool = False) -> None:
    """Prints a summary."""
    if as_json:
        click.echo(json.dumps({"summary": summary.as_json()})) if one_line else common.print_json(
            summary.as_json()
        )
        return
    asked = summary.starts - summary.not_asked.total()
    waited = summary.refused.total()
    click.echo(
        f"{plural(summary.starts, 'start')}, {asked} asked about: {asked - waited} placed, {waited} would have waited"
    )
    for kind, count in summary.refused.most_common():
        click.echo(f"  {count} {kind}, for instance: {summary.why[kind]}")
    for why, count in summary.not_asked.most_common():
        click.echo(f"  {count} not asked about: {why}")
    if summary.missed:
        click.echo(f"  {plural(summary.missed, 'job')} held nodes without being asked about")
    for policy, count in summary.plugin.most_common():
        click.echo(f"  {plural(count, 'start')} under policy {texts.printable(policy)} of the plugin")
    rows = [[summary.policy, *_cells(summary.ours)], [f"{system}, the same jobs", *_cells(summary.stock)]]
    if waited:
        rows.append([f"{system}, jobs that would have waited", *_cells(summary.waiting)])
    common.print_table(["nodes by", "jobs", "APH", "sharing links"], rows)


def _cells(side: Side) -> list[str]:
    return [str(side.jobs), "-" if side.aph is None else f"{side.aph:.3f}", str(side.sharing)]
