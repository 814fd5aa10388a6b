"""A setting of a run is written once: its option, its keyword argument and its place in a task come from one field."""

from __future__ import annotations

import dataclasses
from typing import Any

import click
import pytest
import topolane
from click.testing import CliRunner
from topolane import _engine
from topolane.cli import cli
from topolane.cli.settings import options_of, taken
from topolane.options import option
from topolane.run import INFERRED, Network, Settings
from topolane.sources import Shape
from topolane.sweep import Task

FIELDS = [
    field
    for settings in (Settings, Network, Shape)
    for field in dataclasses.fields(settings)
    if "help" in field.metadata
]
PLURAL = {"policy": "--policies", "queue": "--queues", "scenario": "--scenarios"}
"""What `compare` has instead, for several runs."""


@dataclasses.dataclass(frozen=True)
class Made:
    """Settings that no command has."""

    turns: int = option(3, "How many turns.")
    name: str | None = option(None, "What it is called.")
    is_late: bool = option(False, "Whether it is late.", flag="--late")
    inside: float = 0.5


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_every_setting_is_an_option(command: str) -> None:
    """Every field with a help text is an option of both commands, under its flag, with that text."""
    text = " ".join(CliRunner().invoke(cli, [command, "--help-all"]).output.replace("-\n", "-").split())
    for field in FIELDS:
        flag = field.metadata["flag"] or "--" + field.name.replace("_", "-")
        if command == "compare" and field.name in PLURAL:
            flag = PLURAL[field.name]
            assert f" {flag} " in text
        else:
            assert f" {flag} " in text and field.metadata["help"].split(":")[0][:20] in text


def test_a_new_field_is_an_option_with_its_default_and_reaches_its_class() -> None:
    """A field written with `option` needs nothing else; one without is not offered."""
    found: list[Made] = []

    @click.command()
    @options_of(Made)
    def command(**options: Any) -> None:
        found.append(taken(Made, options, inside=0.25))
        assert options == {}

    for words in ([], ["--turns", "7", "--name", "x", "--late"]):
        assert CliRunner().invoke(command, words).exit_code == 0
    assert found == [Made(3, None, False, 0.25), Made(7, "x", True, 0.25)]
    assert CliRunner().invoke(command, ["--inside", "1"]).exit_code == 2


def test_a_task_has_all_settings_and_simulate_takes_them_as_arguments() -> None:
    """What is a field of Settings is one of Task, and an argument of simulate; no other name is."""
    names = {field.name for field in dataclasses.fields(Settings)}
    assert names < {field.name for field in dataclasses.fields(Task)}
    machine = topolane.machine("fat-tree(radix=4)")
    jobs = topolane.workload("exp-2", machine.nodes, shape=Shape(limit=20))
    run = topolane.simulate(jobs, machine, Settings(policy="isolated"), queue="fcfs")
    assert (run.policy, run.queue) == ("isolated", "fcfs")
    with pytest.raises(TypeError, match="polcy"):
        topolane.simulate(jobs, machine, polcy="isolated")


def test_the_engine_reads_each_setting_by_its_own_name() -> None:
    """No setting has another form on its way into the engine. Only what is inferred from the records is done before."""
    read = set()

    class Watched:
        def __getattr__(self, name: str) -> Any:
            read.add(name)
            return getattr(Settings(), name)

    settings: Any = Watched()
    machine = topolane.machine("fat-tree(radix=4)")
    _engine.simulate(topolane.workload("exp-2", machine.nodes, shape=Shape(limit=20)), machine, settings)
    assert read == {field.name for field in dataclasses.fields(Settings)} - INFERRED.keys()
