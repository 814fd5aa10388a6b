"""A running Kubernetes cluster as a source, read at intervals like `topolane k8s status` and `explain` read
it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from topolane import texts
from topolane._engine import InputError
from topolane.kubernetes.client import Cluster
from topolane.kubernetes.explain import explain
from topolane.kubernetes.export import job_records, of_each_node
from topolane.kubernetes.fit import fits, may_use
from topolane.kubernetes.inspection import Group, Inspection, Where, groups_of, inspect, on_machine
from topolane.kubernetes.objects import GPUS, ONE, Pod
from topolane.kubernetes.waiting import wait_reason
from topolane.serve.snapshot import Running, Series, Snapshot, Waiting, look_of
from topolane.units import plural

BELONGS_TO_A_NODE = frozenset({"DaemonSet", "Node"})
"""Owners of pods that are not jobs: these pods come and go with their node."""
CONSTRAINTS = ("nodeSelector", "tolerations", "affinity")
"""The fields of a pod that restrict its nodes."""
NOTES = (
    "Kubernetes decides when pods start. Forecasts are the engine's, with policy {policy} and the queue easy in order of priority.",
    "Forecasts put the most pods of a group on a node that fit on an empty one. Pods of DaemonSets do not count.",
)


@dataclasses.dataclass(frozen=True)
class _Usable:
    """The nodes that a pod may use, and the resources of each kind of node among them."""

    nodes: tuple[int, ...]
    sizes: list[dict[str, int]]
    """Resources in Kubernetes' units, in thousandths."""
    counts: list[dict[str, int]]
    """Resources in the machine's units."""


class Kubernetes:
    """A running cluster as a source.

    policy: None for the policy in topolane-scheduler's settings. Raises InputError if the cluster does not
    answer or its machine is not known.
    """

    queue = "easy"
    epoch = 0.0

    def __init__(self, cluster: Cluster, where: Where, policy: str | None, interval: float) -> None:
        look = inspect(cluster, where)
        if look.machine is None:
            raise InputError(look.problems[0])
        self._cluster, self._where, self.interval = cluster, where, interval
        self.machine = look.machine
        self.policy = policy or look.settings.policy
        self.title = f"Kubernetes, {self.machine.name}"
        self.notes = (*self.machine.notes, *(note.format(policy=self.policy) for note in NOTES))
        self.partitions: dict[str, tuple[int, ...]] = {}
        self._looks: tuple[Inspection, ...] = ()
        self._ids: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def now(self) -> Snapshot:
        """The present state of the cluster. Raises InputError if it does not answer."""
        look = inspect(self._cluster, self._where)
        limits = {name: record.limit for name, record in job_records(self._cluster).items()}
        self._looks = (*self._looks[-1:], look)
        jobs = groups_of(look.pods, look.proofs) | _services(look.pods)
        self._ids = {name: self._ids.get(name) or next(self._numbers) for name in jobs}
        running = self._alone([self._running(look, job, limits) for job in jobs.values() if job.placed])
        queue = sorted(
            (job for job in jobs.values() if not job.placed),
            key=lambda job: (-job.first.priority, job.since, job.name),
        )
        usable: dict[str, _Usable] = {}
        waiting = tuple(self._waiting(look, job, limits, usable) for job in queue)
        held = {node for job in running for node in job.nodes}
        return Snapshot(look.time, running, waiting, self._out(look, held), self._problems(look))

    def at(self, time: float) -> None:
        """None: a cluster keeps no past states, so the page's history is used."""

    def span(self) -> None:
        """None: a cluster keeps no past states."""

    def explain(self, snapshot: Snapshot, job: Waiting) -> list[str] | None:
        """Why a group waits, as `topolane k8s explain` says it. For a pod of another scheduler, that
        scheduler's own sentence.
        """
        look = look_of(self._looks, snapshot)
        if look is None:
            return None
        if job.name in look.groups:
            return explain(look, job.name).sentences
        return [f"Its scheduler says: {texts.sentence(job.why)}."]

    def series(self) -> Series | None:
        """None: only the page's history has lines over time."""
        return None

    def _running(self, look: Inspection, job: Group, limits: Mapping[str, float | None]) -> Running:
        own = look.groups.get(job.name)
        links = look.allocations.get(own.number) if own is not None else None
        limit = limits.get(job.first.job or "")
        return Running(
            *(self._ids[job.name], job.name, "", job.first.namespace),
            tuple(on_machine(job.hosts, self.machine)),
            job.begun,
            end=None if limit is None else job.begun + limit,
            links=tuple(sorted(links.links)) if links else (),
            bandwidth_share=links.bandwidth_share if links else 1.0,
            share=self._counted(*of_each_node(job.placed, look.nodes)[0]),
            requeueable=job.first.owner is not None and job.first.group is not None,
        )

    def _waiting(
        self, look: Inspection, job: Group, limits: Mapping[str, float | None], usable: dict[str, _Usable]
    ) -> Waiting:
        pod, may = job.first, self._usable(look, job.first, usable)
        together = max([1, *(fits(pod.asks, has, {}, job.size) for has in may.sizes)])
        nodes = math.ceil(job.size / together)
        asks = {name: amount * math.ceil(job.size / nodes) for name, amount in pod.asks.items()}
        share = self._counted(
            max(math.ceil(asks.get("cpu", 0) / ONE), 1),
            asks.get("memory", 0) // ONE,
            sum(asks.get(name, 0) for name in GPUS) // ONE,
        )
        return Waiting(
            *(self._ids[job.name], job.name, "", pod.namespace, nodes),
            min(each.created for each in job.pods),
            limits.get(pod.job or ""),
            why=wait_reason(job).words,
            share=None if _is_whole(share, may.counts) else share,
            held=len(job.pods) < job.size or all(each.is_gated for each in job.pods),
            eligible=None if len(may.nodes) == self.machine.nodes else may.nodes,
        )

    def _usable(self, look: Inspection, pod: Pod, known: dict[str, _Usable]) -> _Usable:
        """The nodes that a pod may use. known: results for pods with the same constraints."""
        key = json.dumps([pod.spec.get(name) for name in CONSTRAINTS], sort_keys=True)
        if key not in known:
            rows = (
                (node, look.nodes.get(self.machine.node_name(node))) for node in range(self.machine.nodes)
            )
            may = [(number, node) for number, node in rows if node is not None and may_use(pod, node)]
            counts = (self.machine.resources_of(number) for number, _ in may)
            known[key] = _Usable(
                tuple(number for number, _ in may), _distinct(node.has for _, node in may), _distinct(counts)
            )
        return known[key]

    def _counted(self, cores: int, memory: int, gpus: int) -> dict[str, int]:
        """The resources of a node that a job takes, without those that the machine does not count."""
        found = {"cores": cores, "memory": memory, "gpu": gpus}
        return {name: count for name, count in found.items() if count and name in self.machine.resources}

    def _alone(self, running: Sequence[Running]) -> tuple[Running, ...]:
        """The jobs that have nodes on the machine. A job that is alone on its nodes and takes all of them
        counts as holding whole nodes.
        """
        on = Counter(node for job in running for node in job.nodes)
        return tuple(
            dataclasses.replace(job, share=None)
            if all(on[node] == 1 for node in job.nodes)
            and _is_whole(job.share or {}, [self.machine.resources_of(node) for node in job.nodes])
            else job
            for job in running
            if job.nodes
        )

    def _out(self, look: Inspection, held: set[int]) -> tuple[int, ...]:
        """The nodes that accept no pods and have none."""
        rows = ((node, look.nodes.get(self.machine.node_name(node))) for node in range(self.machine.nodes))
        return tuple(
            node for node, known in rows if node not in held and (known is None or not known.takes_pods)
        )

    def _problems(self, look: Inspection) -> tuple[str, ...]:
        more = sum(self.machine.node_named(name) is None for name in look.nodes)
        if not more:
            return look.problems
        has = "has" if more == 1 else "have"
        return (*look.problems, f"{plural(more, 'node')} {has} come since the page started: start it again.")


def _services(pods: Sequence[Pod]) -> dict[str, Group]:
    """The pods of services that hold nodes, grouped by the owner that replaces them."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        kind = (pod.owner or {}).get("kind")
        if pod.holds_node and pod.group is None and kind not in BELONGS_TO_A_NODE:
            found[f"{kind} {pod.namespace}/{(pod.owner or {}).get('name')}"].append(pod)
    return {name: Group(name, 0, tuple(members)) for name, members in found.items()}


def _distinct(amounts: Iterable[Mapping[str, int]]) -> list[dict[str, int]]:
    return [dict(one) for one in {tuple(sorted(one.items())) for one in amounts}]


def _is_whole(share: Mapping[str, float], counts: Iterable[Mapping[str, int]]) -> bool:
    """Whether a job with this share leaves no room for another job: it takes all cores, or all GPUs, of each
    node.
    """
    return all(any(share.get(name, 0) >= one.get(name, 0) > 0 for name in ("cores", "gpu")) for one in counts)
