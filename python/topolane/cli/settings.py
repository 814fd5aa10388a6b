"""Converts fields of settings to options of the command line, and given options to settings."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

from topolane._engine import InputError
from topolane.cli import values
from topolane.cli.common import WORD, Number, options
from topolane.run import INFERRED, Defrag, Network, Settings
from topolane.sources import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from topolane.sweep import Task

S = TypeVar("S")


def _cores(_: click.Context, __: click.Parameter, text: str | None) -> int | str | None:
    """A number of cores, or the way to choose it for each job."""
    if text is None or text == "auto" or re.fullmatch(r"fixed:[1-9][0-9]{0,8}", text):
        return text
    if re.fullmatch(r"[0-9]{1,10}", text) and 1 <= int(text) <= 2**31:
        return int(text)
    raise click.BadParameter(f"{text} is neither a number from 1 to 2147483648, nor auto, nor fixed:K")


def _defrag(_: click.Context, __: click.Parameter, value: float | None) -> Defrag | None:
    return None if value is None else Defrag(per_start=value)


def _share(_: click.Context, __: click.Parameter, value: float) -> float:
    if not 0 <= value <= 1:
        raise click.BadParameter(f"{value} is not between 0 and 1")
    return value


def _patterns(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return pattern_names(text)


def pattern_names(text: str) -> tuple[str, ...]:
    """Comma-separated patterns. Commas inside brackets separate parameters: `pairs, suba2a(dims=2, bytes=8)`."""
    return tuple(name.strip() for name in re.split(r",(?![^(]*\))", text) if name.strip())


HOW: dict[str, dict[str, Any]] = {
    "seed": {"type": WORD},
    "segment": {"type": click.IntRange(1, 2**32 - 1), "metavar": "NODES"},
    "min_bandwidth": {"type": float, "metavar": "SHARE"},
    "within": {"type": str, "metavar": "WHERE"},
    "limit": {"type": click.IntRange(1, 2**63)},
    "cores_per_node": {"type": str, "metavar": "N|auto|fixed:K", "callback": _cores},
    "gpus_per_node": {"type": click.IntRange(1, 128)},
    "defrag": {"type": Number(0, 100), "metavar": "MOVES", "callback": _defrag},
    "outages": {"type": str, "metavar": "FILE.csv"},
    "held": {"type": click.Choice(INFERRED["held"])},
    "capacity": {"type": click.Choice(INFERRED["capacity"])},
    "order": {"type": click.Choice(INFERRED["order"])},
    "failures": {"type": str, "metavar": "RATE,HOURS|FILE.csv|none"},
    "spares": {"type": click.IntRange(0, 2**20), "metavar": "K"},
    "checkpoint": {"type": Number(0, 10_000), "metavar": "HOURS"},
    "policy": {"type": values.POLICY},
    "queue": {"type": values.QUEUE},
    "scenario": {"type": values.SCENARIO},
    "model": {"type": values.MODEL, "default": None},
    "routing": {"type": values.ROUTING},
    "communication": {"callback": _share},
    "patterns": {"type": values.PATTERNS, "callback": _patterns},
}
"""Callbacks that check and convert an option whose type alone is not enough."""
TYPES = {"int": int, "float": float, "str": str}


def options_of(
    settings: type, *, only: Collection[str] | None = None, without: Collection[str] = ()
) -> Callable[..., Any]:
    """The options of a dataclass, in the order of its fields."""
    return options(
        *(
            _option(field)
            for field in _offered(settings)
            if field.name not in without and (only is None or field.name in only)
        )
    )


def _option(field: dataclasses.Field[Any]) -> Callable[..., Any]:
    flag = field.metadata["flag"] or f"--{field.name.replace('_', '-')}"
    if field.type == "bool":
        return click.option(flag, field.name, is_flag=True, help=field.metadata["help"])
    default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
    how: dict[str, Any] = {"default": default, "type": TYPES.get(str(field.type).split(" ")[0])} | HOW.get(
        field.name, {}
    )
    shown = how["default"] is not None
    return click.option(flag, field.name, help=field.metadata["help"], show_default=shown, **how)


def _offered(settings: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(settings) if "help" in field.metadata]


def taken(settings: type[S], options: dict[str, Any], **more: Any) -> S:
    """Settings from the given options, which are removed from `options`; `more` are other fields."""
    names = [field.name for field in _offered(settings) if field.name in options]
    return settings(**{name: options.pop(name) for name in names}, **more)


def shape_of(options: dict[str, Any]) -> Shape:
    """The shape of a workload from the given options, which are removed from `options`.

    A choice of cores per job stays, as `chosen_cores`, because it does not shape the workload.
    """
    if isinstance(options["cores_per_node"], str):
        options["chosen_cores"] = options["cores_per_node"]
        options["cores_per_node"] = None
    return taken(Shape, options)


def task_of(source: str, options: dict[str, Any]) -> Task:
    """The task of a workload with the given options, each of which is a field of it."""
    from topolane.sweep import Task

    return Task(workload=source, shape=shape_of(options), network=network_of(options), **options)


def shape_alone(options: dict[str, Any]) -> Shape:
    """Like `shape_of`, for commands that run no jobs: no job can choose its cores."""
    shape = shape_of(options)
    if "chosen_cores" in options:
        raise InputError(
            f"--cores-per-node {options['chosen_cores']}: give a number; only a run can choose the cores of each job"
        )
    return shape


def network_of(options: dict[str, Any]) -> Network | None:
    """The network of the given options, which are removed from `options`; None without a network."""
    cores = options.pop("chosen_cores", None)
    if options["model"] is None:
        if cores is not None:
            raise InputError(f"--cores-per-node {cores} needs --network: the choice depends on contention")
        for field in _offered(Network):
            del options[field.name]
        return None
    return taken(Network, options, cores_per_node=cores)


workload_options = options(
    click.option(
        "--workload",
        type=values.WORKLOAD,
        help="A synthetic workload: cab-aug, exp-16, ... (`topolane workload show` lists them).",
    ),
    click.option("--trace", help="A job log instead: SWF, CSV or output of sacct -P, gzipped or not."),
    options_of(Shape),
)
seed_option = options_of(Settings, only=("seed",))
shape_options = options_of(Shape)
network_options = options_of(Network)
run_options = options_of(Settings)
"""The options of a run, without its network."""
compare_options = options_of(Settings, without=("policy", "queue", "scenario"))
"""The options that all runs of a comparison share."""
racks_options = options_of(Settings, without=("segment", "spares"))
"""The options that all runs of a comparison of segments and spare nodes share."""
