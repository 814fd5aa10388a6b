"""How a shadow's starts and its summary are printed."""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from topolane import texts
from topolane._engine import InputError
from topolane.cli import common, values
from topolane.cli.explained import ExplainedCommand
from topolane.units import duration as in_words
from topolane.units import plural

if TYPE_CHECKING:
    from topolane._engine import Machine
    from topolane.cluster.answers import Side, Summary
    from topolane.cluster.shadow import Shadow, Watched
    from topolane.cluster.shadow_log import Past, ShadowReplay

Command = TypeVar("Command", bound=Callable[..., Any])


def _check_min_bandwidth(policy: str, share: float | None) -> None:
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


def options(system: str) -> Callable[[Command], Command]:
    """The options of a shadow that all systems have."""

    def decorate(command: Command) -> Command:
        for option in reversed(
            (
                click.option(
                    "--policy",
                    type=values.POLICY,
                    required=True,
                    help="Policy: a name (`topolane policies` lists them), or module:Class.",
                ),
                click.option(
                    "--min-bandwidth",
                    type=click.FloatRange(0, 1, min_open=True),
                    metavar="SHARE",
                    help="Least share of full bandwidth that jobs accept on links of their own [default: all of it].",
                ),
                click.option(
                    "--log",
                    metavar="FILE",
                    help="Append every event to this file, for `replay`; go on from what an earlier shadow wrote there.",
                ),
                click.option(
                    "--interval",
                    type=click.FloatRange(0.2, 60),
                    default=5.0,
                    show_default=True,
                    metavar="SECONDS",
                    help=f"Time between two looks at {system}.",
                ),
                click.option(
                    "--for",
                    "duration",
                    type=click.FloatRange(0, min_open=True),
                    metavar="SECONDS",
                    help="End after this time [default: at Ctrl-C or SIGTERM].",
                ),
                common.json_option,
            )
        ):
            command = option(command)
        return command

    return decorate


@dataclasses.dataclass(frozen=True)
class ShadowOptions:
    """What the options of a shadow ask for."""

    policy: str
    min_bandwidth: float | None
    log: str | None
    interval: float
    duration: float | None
    as_json: bool

    def show(
        self, watch: Callable[[Callable[[Machine], Past]], tuple[Watched, Machine]], system: str
    ) -> None:
        """Shows each start and the policy's answer until the time is over, at Ctrl-C or at SIGTERM, and then a summary.

        watch: what is watched, and its machine; gets a function that reads what an earlier shadow of this machine knew.
        """
        from topolane.cluster.log import EventLog
        from topolane.cluster.shadow import Shadow
        from topolane.cluster.shadow_log import Past, past

        _check_min_bandwidth(self.policy, self.min_bandwidth)
        written = None if self.log is None else EventLog(self.log)
        known = Past()

        def before(machine: Machine) -> Past:
            nonlocal known
            known = Past() if self.log is None else past(self.log, self.policy, machine)
            return known

        def write(event: str, **facts: Any) -> None:
            if written is not None:
                written.write(event, **facts)

        def report(start: Mapping[str, Any]) -> None:
            click.echo(json.dumps(start) if self.as_json else line(start, self.policy, system))
            sys.stdout.flush()

        watched, machine = watch(before)
        seen = Shadow(
            watched,
            machine,
            self.policy,
            min_bandwidth=self.min_bandwidth,
            interval=self.interval,
            past=known,
            write=write,
            report=report,
        )
        if not self.as_json:
            _begin(seen)
        _run(seen, self.duration)
        end(seen.summary, self.as_json, system, one_line=True)


def _begin(seen: Shadow) -> None:
    if seen.away is not None:
        started = plural(seen.summary.starts, "start")
        click.echo(f"goes on after {in_words(seen.away)} in which it did not look; {started} so far")
    hold = "holds" if seen.jobs == 1 else "hold"
    click.echo(f"{plural(seen.jobs, 'job')} {hold} nodes already; the next starts are shown as they happen")


def _run(seen: Shadow, seconds: float | None) -> None:
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: seen.stopping.set())
    timer = None if seconds is None else threading.Timer(seconds, seen.stopping.set)
    if timer is not None:
        timer.daemon = True
        timer.start()
    seen.run()


@click.command(
    "replay",
    cls=ExplainedCommand,
    examples={
        "Check that this engine decides as the shadow did": "shadow.jsonl",
        "Write the jobs as a workload, too": "shadow.jsonl --csv jobs.csv",
    },
)
@click.argument("log")
@click.option(
    "--csv",
    "table",
    help="File to write the jobs that ran to, as a workload for `topolane compare --trace`.",
)
@click.option("--policy", metavar="MODULE:CLASS", help="Policy of the shadow, if it is a class of your own.")
@common.json_option
def replay(log: str, table: str | None, policy: str | None, as_json: bool) -> None:
    """Make the decisions in a shadow's LOG once more with this engine, and print its summary.

    The exit code is 1 if a decision differs.
    """
    from topolane.cluster.shadow_log import replay as repeated

    found = repeated(log, policy)
    if table is not None:
        common.write_text(table, found.csv(), "--csv")
    _print_replay(found, as_json)


def _print_replay(found: ShadowReplay, as_json: bool) -> None:
    """Prints what became of the decisions, and ends the program: with 1 if one differs."""
    if as_json:
        common.print_json({**found.summary.as_json(), "differing": found.differing})
    else:
        asked = found.summary.starts - found.summary.not_asked.total()
        same = "all the same" if not found.differing else f"{len(found.differing)} differ"
        click.echo(f"{plural(asked, 'decision')} made once more: {same}")
        for sentence in found.differing[:5]:
            click.echo(sentence)
        end(found.summary, as_json, {"slurm": "Slurm"}.get(found.summary.system, found.summary.system))
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
