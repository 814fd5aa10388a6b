"""Gives the topology plugin the links that no new job may own, and finds the running jobs that failed links
affect.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from topolane import texts
from topolane._engine import DedicatedRoutes, InputError, Machine
from topolane.slurm import inspection, links_out, plugin_state
from topolane.slurm.links_out import LinksOut
from topolane.slurm.plugin_machine import read_machine
from topolane.slurm.status import JobOutage, touched_jobs
from topolane.slurm.view import view


@dataclasses.dataclass(frozen=True)
class OutageSettings:
    """What is out of service, and where the plugin's file is."""

    machines: tuple[Path, ...]
    """The machine file in topolane.conf, or both files."""
    state: Path
    """Slurm's StateSaveLocation."""
    fabric: Path | None = None
    """The file that lists what has failed."""
    service_uplinks: int = 0


@dataclasses.dataclass(frozen=True)
class OutageReport:
    """What was written for the plugin. Links are given by name."""

    failed: list[str]
    reserved: list[str]
    newly_failed: list[str]
    back: list[str]
    """Links that had failed and work again."""
    jobs: list[JobOutage]
    """Running jobs that own or may use a failed link."""
    written: bool
    problems: list[str]
    """Sentences on what could not be read from Slurm and from the previous file."""


def tell(settings: OutageSettings, *, write: bool = True) -> OutageReport:
    """Writes the file for the plugin. Raises InputError for bad input; then nothing is written."""
    read = read_machine(settings.machines)
    machine, machine_sum = read.machine, read.sum
    source = str(settings.machines[0])
    failed = links_out.failed(settings.fabric, read, source) if settings.fabric else frozenset()
    out = LinksOut(failed, frozenset(DedicatedRoutes.set_aside(machine, settings.service_uplinks)))
    look = _look(settings, machine, machine_sum)
    problems = list(look.problems)
    try:
        before = links_out.read(settings.state, machine, machine_sum)
    except InputError as error:
        before = LinksOut()
        problems.append(f"{texts.sentence(str(error))}: it is replaced.")
    if write:
        links_out.write(settings.state, out, machine_sum)
    return OutageReport(
        links_out.names(machine, out.failed),
        links_out.names(machine, out.reserved),
        links_out.names(machine, out.failed - before.failed),
        links_out.names(machine, before.failed - out.failed),
        touched_jobs(look, view(look), out.failed),
        write,
        problems,
    )


def _look(settings: OutageSettings, machine: Machine, machine_sum: int) -> inspection.SlurmInspection:
    """Reads Slurm and the plugin's state with this machine. Raises InputError if the plugin uses another
    machine.
    """
    look = inspection.inspect(inspection.InspectionSettings(settings.state))
    state = look.state
    assert state is not None
    if state.counters is None and state.jobs is None and state.links is None:
        raise InputError(
            f"--state {settings.state}: the plugin has written nothing there: name Slurm's StateSaveLocation"
        )
    if state.jobs and state.jobs.machine_sum not in (None, machine_sum):
        raise InputError(
            f"--machine {settings.machines[0]}: the plugin has read {state.jobs.machine} with another content: name the file of "
            "topolane.conf, and restart slurmctld if it has changed"
        )
    owned = plugin_state.owned_by(state.links, machine, machine_sum) if _fits(state, machine_sum) else {}
    # Problems of the links-out file are reported where the file is replaced.
    file = str(settings.state / links_out.FILE)
    problems = tuple(one for one in look.problems if not one.startswith(file))
    return dataclasses.replace(look, machine=machine, owned=owned, problems=problems)


def _fits(state: plugin_state.PluginState, machine_sum: int) -> bool:
    """Whether the owned links in the state are numbered by this machine file."""
    return state.links is not None and state.links.machine_sum == machine_sum
