"""A running Kubernetes cluster as a source, read at intervals like `topolane k8s status` and `explain` read
it.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TypeVar

from topolane import texts
from topolane._engine import InputError
from topolane.cluster.view import Running, View, Waiting
from topolane.kubernetes.client import KubernetesCluster
from topolane.kubernetes.explain import explain
from topolane.kubernetes.export import job_records
from topolane.kubernetes.inspection import KubernetesInspection, Where, inspect
from topolane.kubernetes.view import view
from topolane.serve.source import Series, look_of
from topolane.units import plural

J = TypeVar("J", Running, Waiting)

NOTES = (
    "Kubernetes decides when pods start. Forecasts are the engine's, with policy {policy} and the queue easy in order of priority.",
    "Forecasts put the most pods of a group on a node that fit on an empty one. Pods of DaemonSets do not count.",
)


class KubernetesSource:
    """A running cluster as a source.

    policy: None for the policy in topolane-scheduler's settings. Raises InputError if the cluster does not
    answer or its machine is not known.
    """

    queue = "easy"
    epoch = 0.0

    def __init__(self, cluster: KubernetesCluster, where: Where, policy: str | None, interval: float) -> None:
        look = inspect(cluster, where)
        if look.machine is None:
            raise InputError(look.problems[0])
        self._cluster, self._where, self.interval = cluster, where, interval
        self.machine = look.machine
        self.policy = policy or look.settings.policy
        self.title = f"Kubernetes, {self.machine.name}"
        self.notes = (*self.machine.notes, *(note.format(policy=self.policy) for note in NOTES))
        self.partitions: dict[str, tuple[int, ...]] = {}
        self._looks: tuple[KubernetesInspection, ...] = ()
        self._ids: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def now(self) -> View:
        """The present state of the cluster. Raises InputError if it does not answer."""
        look = dataclasses.replace(inspect(self._cluster, self._where), machine=self.machine)
        limits = {name: record.limit for name, record in job_records(self._cluster).items()}
        self._looks = (*self._looks[-1:], look)
        found = view(look, limits)
        names = found.names.values()
        self._ids = {name: self._ids.get(name) or next(self._numbers) for name in names}
        return dataclasses.replace(
            found,
            running=tuple(self._known(job) for job in found.running if job.nodes),
            waiting=tuple(self._known(job) for job in found.waiting),
            problems=self._problems(look),
        )

    def at(self, time: float) -> None:
        """None: a cluster keeps no past states, so the page's history is used."""

    def span(self) -> None:
        """None: a cluster keeps no past states."""

    def explain(self, snapshot: View, job: Waiting) -> list[str] | None:
        """Why a group waits, as `topolane k8s explain` says it. For a pod of another scheduler, that
        scheduler's own sentence.
        """
        look = look_of(self._looks, snapshot)
        if look is None:
            return None
        if job.is_ours:
            return explain(look, job.name).sentences
        return [f"Its scheduler says: {texts.sentence(job.why)}."]

    def series(self) -> Series | None:
        """None: only the page's history has lines over time."""
        return None

    def _known(self, job: J) -> J:
        """A job with its number on the page, which stays the same from look to look."""
        return dataclasses.replace(job, id=self._ids[job.name])

    def _problems(self, look: KubernetesInspection) -> tuple[str, ...]:
        more = sum(self.machine.node_named(name) is None for name in look.nodes)
        if not more:
            return look.problems
        has = "has" if more == 1 else "have"
        return (*look.problems, f"{plural(more, 'node')} {has} come since the page started: start it again.")
