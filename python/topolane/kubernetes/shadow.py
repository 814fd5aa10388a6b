"""A cluster of Kubernetes as a shadow sees it (topolane.cluster.shadow)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from topolane import untrusted
from topolane._engine import Machine
from topolane.cluster.hosts import on_machine
from topolane.cluster.hypothetical import Holder, Question
from topolane.cluster.shadow import Ended, Look, Started
from topolane.cluster.shadow_log import Past
from topolane.kubernetes import history
from topolane.kubernetes.client import ClusterError, KubernetesCluster
from topolane.kubernetes.export import JobRecord, job_records, of_each_node
from topolane.kubernetes.fit import ignored, slots
from topolane.kubernetes.inspection import PODS
from topolane.kubernetes.machine import NODES
from topolane.kubernetes.objects import KubernetesNode, Pod
from topolane.kubernetes.proofs import Proofs


class WatchedCluster:
    """One cluster.

    namespaces: those whose jobs are asked about; none for all. past: what an earlier shadow knew whose log goes on. proved: what proves
    the placements of topolane-scheduler.
    """

    system = "kubernetes"
    counts_slots = True
    error: type[Exception] = ClusterError
    facts: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        cluster: KubernetesCluster,
        machine: Machine,
        past: Past,
        *,
        namespaces: Sequence[str] = (),
        proved: Proofs | None = None,
    ) -> None:
        self._cluster, self._machine, self._namespaces = cluster, machine, frozenset(namespaces)
        self._proofs, self._last = proved or Proofs(), past.last
        self._history = history.GroupHistory()
        if past.until is not None:
            here = {run.key: history.PlacedGroup(number, run.start) for number, run in past.runs.items()}
            over = {run.key: run.start for run in past.over.values()}
            self._history = history.GroupHistory(here, over, past.since or 0.0)

    def look(self) -> Look:
        """What happened since the last look. Raises ClusterError."""
        records = job_records(self._cluster)
        problems: list[str] = []
        nodes = {
            node.name: node
            for node in untrusted.each(KubernetesNode.of, self._cluster.items(NODES), "node", problems)
        }
        pods = self._proofs.bound(tuple(untrusted.each(Pod.of, self._cluster.items(PODS), "pod", problems)))
        return Look(self._events(pods, records, nodes, time.time()), problems=problems)

    def forget(self) -> None:
        """Each look reads everything."""

    def _events(
        self,
        pods: Sequence[Pod],
        records: Mapping[str, JobRecord],
        nodes: Mapping[str, KubernetesNode],
        now: float,
    ) -> list[Ended | Started]:
        events = self._history.follow(pods, records, now, self._last)
        waiting = {
            pod.uid for event in events if isinstance(event, history.GroupStarted) for pod in event.pods
        }
        found: list[Ended | Started] = []
        for event in events:
            if isinstance(event, history.GroupEnded):
                found.append(Ended(event.number, event.at))
                continue
            self._last = max(self._last, event.number)
            there = [
                pod
                for pod in pods
                if pod.node
                and pod.uid not in waiting
                and (pod.placed or 0.0) <= event.at
                and (pod.ended is None or pod.ended > event.at)
            ]
            found.append(self._started(event, there, nodes))
            waiting -= {pod.uid for pod in event.pods}
        return found

    def _started(
        self, event: history.GroupStarted, there: Sequence[Pod], nodes: Mapping[str, KubernetesNode]
    ) -> Started:
        hosts = [pod.node for pod in event.pods]
        held = on_machine(hosts, self._machine)
        facts: dict[str, Any] = {
            "id": event.number,
            "job": event.name,
            "key": event.pods[0].key,
            "submit": event.submit,
            "start": event.at,
            "walltime": event.walltime,
            "nodes": self._machine.hostlist(held),
            "pods": len(event.pods),
            "share": list(of_each_node(event.pods, nodes)[0]),
        }
        placement = self._proofs.placement(event.pods[0])
        asked_about = not self._namespaces or event.name.partition("/")[0] in self._namespaces
        of_pods = [self._machine.node_named(host) for host in hosts]
        return Started(
            facts,
            Holder(tuple(held)),
            slots=[node for node in of_pods if node is not None],
            is_missed=event.is_missed or not asked_about,
            plugin={} if placement is None else {"plugin": placement.policy},
            unknown=sorted({host for host in hosts if self._machine.node_named(host) is None}),
            question=lambda: self._question(event, there, nodes),
        )

    def _question(
        self, event: history.GroupStarted, there: Sequence[Pod], nodes: Mapping[str, KubernetesNode]
    ) -> tuple[Question, Mapping[str, Any]]:
        largest = max(
            event.pods, key=lambda pod: (pod.gpus, pod.asks.get("cpu", 0), pod.asks.get("memory", 0))
        )
        found = slots(self._machine, nodes, there, largest, len(event.pods))
        facts: dict[str, Any] = {"free": self._by_count(found.free), "room": self._by_count(found.room)}
        if left := ignored(largest):
            facts["ignored"] = left
        return Question(event.number, len(event.pods), slots=found), facts

    def _by_count(self, counts: Sequence[int]) -> dict[str, str]:
        """The nodes by how many pods they take."""
        return {
            str(most): self._machine.hostlist([node for node, count in enumerate(counts) if count == most])
            for most in sorted(set(counts) - {0})
        }
