"""What the commands that make room have in common."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from topolane import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from topolane.kubernetes.room_plan import EvictionPlan
    from topolane.slurm.room_plan import RequeuePlan

plan_argument = click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path, dir_okay=False))


def timeout_option(default: float, help: str) -> Callable[..., Any]:
    """How long to wait, in seconds."""
    return click.option(
        "--timeout",
        type=click.FloatRange(1, 86400),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=help,
    )


@contextlib.contextmanager
def no_room_is_reported() -> Iterator[None]:
    """Ends with exit code 1 and the reason where there is no plan, or where it could not be carried out."""
    from topolane.cluster.room_files import NoRoomError

    try:
        yield
    except NoRoomError as why:
        click.echo(texts.printable(texts.sentence(f"{why}.")), err=True)
        sys.exit(1)


@contextlib.contextmanager
def steps_printed(as_json: bool) -> Iterator[Callable[[str], None]]:
    """Gives what gets a sentence for each step of a plan that is carried out. Ends with exit code 1 where that fails.

    Each sentence is printed at once; as JSON all of them at the end: `steps`, whether the plan is `done`, and `why` it is not.
    """
    from topolane.cli.common import print_json
    from topolane.cluster.room_files import NoRoomError

    if not as_json:
        with no_room_is_reported():
            yield tell
        return
    steps: list[str] = []
    why = None
    try:
        yield steps.append
    except NoRoomError as error:
        why = texts.sentence(f"{error}.")
    print_json({"done": why is None, "steps": steps, "why": why})
    if why is not None:
        sys.exit(1)


def tell(sentence: str) -> None:
    """Prints what has been done, at once."""
    click.echo(texts.printable(sentence))
    sys.stdout.flush()


def bound(found: RequeuePlan | EvictionPlan) -> str:
    """That no plan costs less, or how much less one could cost."""
    if found.node_hours <= found.least_node_hours * (1 + 1e-9) + 1e-6:
        return "no plan costs less"
    return f"no plan costs less than {found.least_node_hours:,.2f}"
