"""A cluster as the neutral picture of a live system. A group of pods is a job; so are the pods of an owner, such as a service."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topolane.cluster.hosts import hostlist, on_machine
from topolane.cluster.view import NONE, Running, View, Waiting
from topolane.kubernetes.export import of_each_node
from topolane.kubernetes.fit import fits, may_use
from topolane.kubernetes.inspection import KubernetesInspection, PodGroup, groups_of
from topolane.kubernetes.objects import GPUS, ONE, Pod
from topolane.kubernetes.waiting import wait_reason

BELONGS_TO_A_NODE = frozenset({"DaemonSet", "Node"})
"""Owners of pods that are not jobs: these pods come and go with their node."""
CONSTRAINTS = ("nodeSelector", "tolerations", "affinity")
"""The fields of a pod that restrict its nodes."""


@dataclasses.dataclass(frozen=True)
class _Usable:
    """The nodes that a pod may use, and the resources of each kind of node among them."""

    nodes: tuple[int, ...] | None
    """None for all."""
    sizes: list[dict[str, int]]
    """Resources in Kubernetes' units, in thousandths."""
    counts: list[dict[str, int]]
    """Resources in the machine's units."""


def view(look: KubernetesInspection, limits: Mapping[str, float | None] | None = None) -> View:
    """The view of what a look read. Without a machine no job has nodes.

    limits: the time limits of Jobs, by name, for forecasts. Only with them are the nodes that a waiting job may use looked for, and how
    many of its pods fit on one: users can make that long. Without them a waiting job counts a node for each pod.
    The groups of topolane-scheduler keep their numbers of the look; other jobs get higher numbers.
    """
    return _Filling(look, limits).view()


class _Filling:
    def __init__(self, look: KubernetesInspection, limits: Mapping[str, float | None] | None) -> None:
        self._look, self._machine = look, look.machine
        self._limits, self._is_forecast = limits or {}, limits is not None
        self._usable: dict[str, _Usable] = {}

    def view(self) -> View:
        look = self._look
        ours = {pod.uid for group in look.groups.values() for pod in group.pods}
        rest = [pod for pod in look.pods if pod.uid not in ours]
        others = groups_of(rest, look.proofs, look.pods) | _services(rest)
        jobs = [*look.groups.values(), *_numbered(others, look.groups)]
        running = self._alone([self._running(job) for job in jobs if job.placed])
        queue = sorted(
            (job for job in jobs if not job.placed),
            key=lambda job: (-job.first.priority, job.since, job.name),
        )
        waiting = tuple(self._waiting(job) for job in queue)
        found = View(look.time, running, waiting, problems=look.problems)
        return dataclasses.replace(found, out=tuple(self._out(found.busy)))

    def _running(self, job: PodGroup) -> Running:
        look, is_ours = self._look, job.name in self._look.groups
        links = look.allocations.get(job.number) if is_ours else None
        limit = self._limits.get(job.first.job or "")
        policy, rule = look.policy(job) if is_ours else (None, None)
        nodes = tuple(on_machine(job.hosts, self._machine))
        return Running(
            *(job.number, job.name, "", job.first.namespace, nodes, job.begun),
            end=None if limit is None else job.begun + limit,
            links=tuple(sorted(links.links)) if links else (),
            bandwidth_share=links.bandwidth_share if links else 1.0,
            share=self._counted(*of_each_node(job.placed, look.nodes)[0]),
            requeueable=job.first.owner is not None and job.first.group is not None,
            hosts=hostlist(self._machine, job.hosts),
            ranks=tuple(job.hosts),
            slots=len(job.placed),
            size=job.size,
            state="running" if len(job.placed) >= job.size else "partly",
            policy=policy,
            rule=rule,
            link_use=look.link_use(job) if is_ours else NONE,
            is_ours=is_ours,
        )

    def _waiting(self, job: PodGroup) -> Waiting:
        look, pod = self._look, job.first
        nodes, share, eligible = self._needs(job) if self._is_forecast else (job.size, None, None)
        wait, is_ours = wait_reason(job), job.name in look.groups
        policy, rule = look.policy(job) if is_ours else (None, None)
        return Waiting(
            *(job.number, job.name, "", pod.namespace, nodes),
            min(each.created for each in job.pods),
            self._limits.get(pod.job or ""),
            why=wait.words,
            share=share,
            held=len(job.pods) < job.size or all(each.is_gated for each in job.pods),
            eligible=eligible,
            record=job.name,
            slots=len(job.pods),
            size=job.size,
            reason=wait.sentence,
            refused=wait.refused,
            policy=policy,
            rule=rule,
            is_ours=is_ours,
        )

    def _needs(self, job: PodGroup) -> tuple[int, dict[str, int] | None, tuple[int, ...] | None]:
        """How many nodes a waiting job takes, its share of each, and the nodes that it may use."""
        pod, may = job.first, self._may_use(job.first)
        together = max([1, *(fits(pod.asks, has, {}, job.size) for has in may.sizes)])
        nodes = math.ceil(job.size / together)
        asks = {name: amount * math.ceil(job.size / nodes) for name, amount in pod.asks.items()}
        share = self._counted(
            max(math.ceil(asks.get("cpu", 0) / ONE), 1),
            asks.get("memory", 0) // ONE,
            sum(asks.get(name, 0) for name in GPUS) // ONE,
        )
        return nodes, None if _is_whole(share, may.counts) else share, may.nodes

    def _nodes(self) -> Iterator[tuple[int, str]]:
        machine = self._machine
        return ((node, machine.node_name(node)) for node in range(machine.nodes)) if machine else iter(())

    def _may_use(self, pod: Pod) -> _Usable:
        """The nodes that a pod may use. Pods with the same constraints share a result."""
        key = json.dumps([pod.spec.get(name) for name in CONSTRAINTS], sort_keys=True)
        if key not in self._usable:
            rows = [(number, self._look.nodes.get(name)) for number, name in self._nodes()]
            may = [(number, node) for number, node in rows if node is not None and may_use(pod, node)]
            self._usable[key] = _Usable(
                None if len(may) == len(rows) else tuple(number for number, _ in may),
                _distinct(node.has for _, node in may),
                _distinct(self._resources(number) for number, _ in may),
            )
        return self._usable[key]

    def _resources(self, node: int) -> Mapping[str, int]:
        return {} if self._machine is None else self._machine.resources_of(node)

    def _counted(self, cores: int, memory: int, gpus: int) -> dict[str, int]:
        """The resources of a node that a job takes, without those that the machine does not count."""
        found = {"cores": cores, "memory": memory, "gpu": gpus}
        known = () if self._machine is None else self._machine.resources
        return {name: count for name, count in found.items() if count and name in known}

    def _alone(self, running: Sequence[Running]) -> tuple[Running, ...]:
        """The running jobs. A job that is alone on its nodes and takes all of them counts as holding whole nodes."""
        on = Counter(node for job in running for node in job.nodes)
        return tuple(
            dataclasses.replace(job, share=None)
            if all(on[node] == 1 for node in job.nodes)
            and _is_whole(job.share or {}, map(self._resources, job.nodes))
            else job
            for job in running
        )

    def _out(self, held: frozenset[int]) -> Iterator[int]:
        """The nodes that accept no pods and have none."""
        for number, name in self._nodes():
            node = self._look.nodes.get(name)
            if number not in held and (node is None or not node.takes_pods):
                yield number


def _services(pods: Sequence[Pod]) -> dict[str, PodGroup]:
    """The pods of services that hold nodes, grouped by the owner that replaces them."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        kind = (pod.owner or {}).get("kind")
        if pod.holds_node and pod.group is None and kind not in BELONGS_TO_A_NODE:
            found[f"{kind} {pod.namespace}/{(pod.owner or {}).get('name')}"].append(pod)
    return {name: PodGroup(name, 0, tuple(members)) for name, members in found.items()}


def _numbered(others: Mapping[str, PodGroup], ours: Mapping[str, PodGroup]) -> Iterator[PodGroup]:
    """The groups that are not ours, with numbers and names of their own."""
    first = 1 + max((group.number for group in ours.values()), default=0)
    for number, group in enumerate(others.values(), first):
        # Pods that a user gives the name of a group of ours hold their nodes all the same. No group has three words in brackets.
        name = f"{group.name} (its other pods)" if group.name in ours else group.name
        yield dataclasses.replace(group, number=number, name=name)


def _distinct(amounts: Iterable[Mapping[str, int]]) -> list[dict[str, int]]:
    return [dict(one) for one in {tuple(sorted(one.items())) for one in amounts}]


def _is_whole(share: Mapping[str, float], counts: Iterable[Mapping[str, int]]) -> bool:
    """Whether a job with this share leaves no room for another job: it takes all cores, or all GPUs, of each
    node.
    """
    return all(any(share.get(name, 0) >= one.get(name, 0) > 0 for name in ("cores", "gpu")) for one in counts)
