"""The shadow: at each start of a job in a cluster, where a policy would have placed it. It reads and changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import untrusted
from topolane._engine import Machine
from topolane.kubernetes.client import Cluster, ClusterError
from topolane.kubernetes.export import JobRecord, job_records, of_each_node
from topolane.kubernetes.fit import ignored
from topolane.kubernetes.history import Ended, History, Started
from topolane.kubernetes.hypothetical import Holder, Hypothetical, slots
from topolane.kubernetes.inspection import PODS, on_machine
from topolane.kubernetes.machine import NODES
from topolane.kubernetes.objects import Node, Pod
from topolane.kubernetes.proofs import Proofs
from topolane.kubernetes.shadow_log import Past, past
from topolane.live.shadows import Summary, answered

PATIENCE = 10.0
"""Seconds between two attempts to reach an API server that does not answer."""
SHARE_OF_TIME = 4
"""The shadow waits at least 4 times as long as the API server took to answer, so that it is no burden."""


class Shadow:
    """A policy in the shadow of one cluster.

    namespaces: those whose jobs are asked about; none for all. log: the file of an earlier shadow that goes on here, if any.
    proved: what proves the placements of topolane-scheduler. write: gets every event of the log. tell: gets each event of a start, and the number of its nodes. Raises InputError if
    policy or log do not fit.
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: str,
        machine: Machine,
        *,
        namespaces: Sequence[str] = (),
        min_bandwidth: float | None = None,
        interval: float = 5.0,
        log: str | Path | None = None,
        proved: Proofs | None = None,
        write: Callable[..., None],
        tell: Callable[[Mapping[str, Any], int], None] = lambda *_: None,
    ) -> None:
        self._cluster, self._interval, self._machine = cluster, interval, machine
        self._namespaces = frozenset(namespaces)
        self._write, self._tell, self._proofs = write, tell, proved or Proofs()
        self.stopping = threading.Event()
        self._said: frozenset[str] = frozenset()
        """What could not be read at the last look."""
        self._hypothetical = Hypothetical(machine, policy, min_bandwidth)
        before = Past() if log is None else past(log, policy, machine)
        self.summary: Summary = before.summary
        self.away: float | None = None if before.until is None else max(time.time() - before.until, 0.0)
        """Seconds without a shadow between the end of the log and now; None without a log to go on from."""
        self._last = before.last
        self._history = History(before.stays, before.over) if before.until is not None else History()
        self._hypothetical.holders.update(before.holders)
        self.summary.policy, self.summary.system = policy, "cluster"
        facts = {"min_bandwidth": min_bandwidth} if min_bandwidth is not None else {}
        if self.away is not None:
            facts["away"] = round(self.away, 3)
        write("shadow", machine=machine.to("toml"), policy=policy, system="kubernetes", **facts)
        self.look()

    @property
    def jobs(self) -> int:
        """How many jobs hold nodes."""
        return len(self._hypothetical.holders)

    def run(self) -> None:
        """Looks until `stopping` is set. An API server that does not answer is asked again."""
        took = 0.0
        while not self.stopping.wait(max(self._interval, SHARE_OF_TIME * took)):
            begun = time.monotonic()
            try:
                self.look()
            except ClusterError as error:
                self._write("error", error=str(error))
                took = PATIENCE / SHARE_OF_TIME
            else:
                took = time.monotonic() - begun
        self._write("stopped")

    def look(self) -> None:
        """Looks once, and asks the policy about each job that has started since. Raises ClusterError."""
        records = job_records(self._cluster)
        problems: list[str] = []
        nodes = {
            node.name: node for node in untrusted.each(Node.of, self._cluster.items(NODES), "node", problems)
        }
        pods = self._proofs.bound(tuple(untrusted.each(Pod.of, self._cluster.items(PODS), "pod", problems)))
        for problem in problems:
            if problem not in self._said:
                self._write("error", error=problem)
        self._said = frozenset(problems)
        self.follow(pods, records, nodes, time.time())

    def follow(
        self, pods: Sequence[Pod], records: Mapping[str, JobRecord], nodes: Mapping[str, Node], now: float
    ) -> None:
        """Takes over what a look saw."""
        events = self._history.follow(pods, records, now, self._last)
        waiting = {pod.uid for event in events if isinstance(event, Started) for pod in event.pods}
        for event in events:
            if isinstance(event, Ended):
                self._write("ends", id=event.number, at=event.at)
                self._hypothetical.holders.pop(event.number, None)
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
            self._started(event, there, nodes)
            waiting -= {pod.uid for pod in event.pods}

    def _started(self, event: Started, there: Sequence[Pod], nodes: Mapping[str, Node]) -> None:
        hosts = [pod.node for pod in event.pods]
        held = on_machine(hosts, self._machine)
        unknown = sorted({host for host in hosts if self._machine.node_named(host) is None})
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
        if event.is_missed or (self._namespaces and event.name.partition("/")[0] not in self._namespaces):
            self._write("holds", **facts)
            self.summary.missed += 1
        else:
            if placement is not None:
                facts["plugin"] = placement.policy
            if held:
                stock = self._hypothetical.placed(event.number, self._once_per_pod(hosts))
                facts |= {"aph": stock.aph, "shares_with": stock.shares_with}
            if unknown or not held:
                facts["not_asked"] = f"the machine does not name its nodes: {', '.join(unknown[:3])}"
            else:
                facts |= self._asked(event, there, nodes)
            self._write("start", **facts)
            self.summary.add(facts, len(held))
            self._tell(facts, len(held))
        self._hypothetical.holders[event.number] = Holder(tuple(held))

    def _asked(self, event: Started, there: Sequence[Pod], nodes: Mapping[str, Node]) -> dict[str, Any]:
        """The policy's answer, and what it was asked."""
        largest = max(
            event.pods, key=lambda pod: (pod.gpus, pod.asks.get("cpu", 0), pod.asks.get("memory", 0))
        )
        found = slots(self._machine, nodes, there, largest, len(event.pods))
        facts: dict[str, Any] = {"free": self._by_count(found.free), "room": self._by_count(found.room)}
        if left := ignored(largest):
            facts["ignored"] = left
        answer = self._hypothetical.ask(event.number, len(event.pods), found)
        return facts | answered(answer, self._machine)

    def _once_per_pod(self, hosts: Sequence[str]) -> list[int]:
        found = [self._machine.node_named(host) for host in hosts]
        return [node for node in found if node is not None]

    def _by_count(self, counts: Sequence[int]) -> dict[str, str]:
        """The nodes by how many pods they take."""
        return {
            str(most): self._machine.hostlist([node for node, count in enumerate(counts) if count == most])
            for most in sorted(set(counts) - {0})
        }
