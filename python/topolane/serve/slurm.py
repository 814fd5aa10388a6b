"""A running Slurm as a source, read at intervals like `topolane slurm status` and `explain` read it."""

from __future__ import annotations

import dataclasses
from collections import Counter

from topolane import sources
from topolane._engine import InputError, Machine
from topolane.cluster.decided import STOCK
from topolane.cluster.view import View, Waiting
from topolane.serve.source import Series, look_of
from topolane.slurm.explain import explain
from topolane.slurm.fabric import slurm_tree, with_resources_of
from topolane.slurm.inspection import TYPE, InspectionSettings, SlurmInspection, inspect
from topolane.slurm.view import partitions_of, policy_of, view

AS_STOCK = "slurm-tree"
"""The policy of a question if the plugin places no jobs."""


class SlurmSource:
    """A running Slurm as a source.

    machine: a name or a file; None for the plugin's file, otherwise Slurm's own tree. policy: None for the
    policy that the plugin uses for most jobs. Raises InputError if Slurm or the machine cannot be read.
    """

    queue = "easy"
    epoch = 0.0

    def __init__(
        self, settings: InspectionSettings, machine: str | None, policy: str | None, interval: float
    ) -> None:
        look = inspect(settings)
        if look.snapshot is None:
            raise InputError(look.problems[0] if look.problems else "slurmctld does not answer")
        self._settings, self.interval = settings, interval
        self._is_plugins = machine is None and look.machine is not None
        self._machine_sum = _sum_of(look)
        bare = _machine(look, machine)
        self.machine = with_resources_of(bare, look.snapshot.nodes, bare.name)
        self.policy = policy or _commonest(look)
        self.partitions = partitions_of(dataclasses.replace(look, machine=self.machine))
        self.title = f"Slurm, {look.configuration.get('ClusterName') or self.machine.name}"
        note = (
            f"Slurm decides when jobs start. Forecasts are the engine's, with policy {self.policy} and the queue easy in Slurm's "
            "order of priority."
        )
        self.notes = (*bare.notes, note)
        self._looks: tuple[SlurmInspection, ...] = ()

    def now(self) -> View:
        """The present state of Slurm; if it does not answer, its last state and a problem."""
        look = self._look()
        is_old = look.snapshot is None
        if not is_old:
            self._looks = (*self._looks[-1:], look)
        elif self._looks:
            look = dataclasses.replace(self._looks[-1], problems=look.problems)
        found = view(look)
        # Without the plugin nothing is wrong with a state that it has not written.
        problems = look.problems if is_old or look.topology in (None, TYPE) else ()
        running = tuple(job for job in found.running if job.nodes)
        return dataclasses.replace(found, running=running, problems=problems, is_old=is_old)

    def _look(self) -> SlurmInspection:
        """Slurm now, with the machine of the page. The plugin numbers links by its own file, as it is now."""
        look, problems = inspect(self._settings), list[str]()
        has_changed = self._is_plugins and look.machine is not None and _sum_of(look) != self._machine_sum
        if has_changed:
            problems.append("The plugin has another machine than when the page started: start it again.")
        if has_changed or not self._is_plugins:
            look = dataclasses.replace(look, owned={}, out=None)
        return dataclasses.replace(look, machine=self.machine, problems=(*look.problems, *problems))

    def at(self, time: float) -> None:
        """None: Slurm keeps no past states, so the page's history is used."""

    def span(self) -> None:
        """None: Slurm keeps no past states."""

    def explain(self, snapshot: View, job: Waiting) -> list[str] | None:
        """Why a job waits, as `topolane slurm explain` says it."""
        look = look_of(self._looks, snapshot)
        if look is None:
            return None
        return list(explain(look, job.name).sentences)

    def series(self) -> Series | None:
        """None: only the page's history has lines over time."""
        return None


def _machine(look: SlurmInspection, machine: str | None) -> Machine:
    if machine is not None:
        return sources.machine(machine)
    return look.machine if look.machine is not None else slurm_tree()


def _sum_of(look: SlurmInspection) -> int | None:
    """The plugin's checksum of its machine."""
    return look.state.jobs.machine_sum if look.state and look.state.jobs else None


def _commonest(look: SlurmInspection) -> str:
    policies = Counter(policy_of(look, job)[0] for job in look.jobs.values())
    named = [(count, name) for name, count in policies.items() if name not in (None, STOCK)]
    return str(max(named)[1]) if named else AS_STOCK
