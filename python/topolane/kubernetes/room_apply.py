"""Carries out a plan that makes room for a group of pods (room_plan.py), with a journal next to the plan.

1. The pods of the group are allowed on the nodes that are kept for it: they get a toleration.
2. The nodes of the plan are kept for the group by a taint. What is evicted cannot come back to them, nor can anything else come.
3. What must go is evicted through the API server, which enforces disruption budgets. Before, an annotation shows the scheduler
   that a group goes whole, so that no pod by which its controller replaces one joins the pods that are still there.
4. The group is placed by topolane-scheduler, and the taints are removed.

A pod is known by its identity, not by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from topolane.cluster.applying import Applying
from topolane.cluster.room_files import BEGIN, DONE, NotAppliedError, RoomJournal
from topolane.kubernetes import room_plan
from topolane.kubernetes.budgets import budgets
from topolane.kubernetes.client import BudgetError, ConflictError, KubernetesCluster, NotFoundError
from topolane.kubernetes.inspection import KubernetesInspection, PodGroup, Where, inspect
from topolane.kubernetes.objects import Pod
from topolane.kubernetes.room_holds import (
    EVICTED,
    LINKS,
    ROOM,
    hold,
    is_held,
    mark,
    release,
    tolerate,
    tolerates,
)
from topolane.kubernetes.room_plan import Evicted, EvictionPlan
from topolane.kubernetes.waiting import wait_reason
from topolane.units import plural

TOLERATE, HOLD, EVICT, FREE = "tolerate", "hold", "evict", "free"
LISTED = 5
"""Names in a sentence."""


class ClusterHost(NamedTuple):
    """The cluster of a plan, and where to look in it."""

    cluster: KubernetesCluster
    where: Where


class EvictionApplying(Applying[EvictionPlan, ClusterHost, KubernetesInspection, PodGroup]):
    """Carries out a plan that makes room. It waits for pods to go, and for the group to be placed."""

    COMMAND = "topolane k8s apply"
    STEPS = (BEGIN, TOLERATE, HOLD, EVICT, FREE, DONE)
    read = staticmethod(room_plan.read)

    def __init__(
        self,
        plan: EvictionPlan,
        journal: RoomJournal,
        host: ClusterHost,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(plan, journal, host, seconds, tell)
        self.cluster = host.cluster
        self.are_kept = False
        """Whether this call has looked at the taints of all nodes. One that is deleted later does not end it."""
        self.blocked: dict[str, str] = {}
        """Why pods could not be evicted, by their names."""

    def look(self) -> KubernetesInspection:
        """The cluster now."""
        return inspect(*self.host)

    def found(self, look: KubernetesInspection) -> PodGroup | None:
        """The group that the plan is for. One of the same name none of whose pods were there is another one."""
        group = look.groups.get(self.plan.group)
        known = group is not None and any(pod.uid in self.plan.pods for pod in group.pods)
        return group if known else None

    def waits(self, look: KubernetesInspection, found: PodGroup) -> bool:
        """Whether some of its pods have no node."""
        return len(found.placed) < self.plan.size

    def changed(self, look: KubernetesInspection) -> Iterator[str]:
        """What is no longer as the plan says."""
        plan, group = self.plan, self.found(look)
        if group is None or group.placed or len(group.pods) < plan.size:
            yield f"group {plan.group} does not wait any more"
        there = {pod.uid: pod for pod in look.pods if pod.is_alive and not pod.is_ending}
        for each in plan.evicted:
            if any(pod.uid not in there or there[pod.uid].node != pod.node for pod in each.pods):
                yield f"{each.name} does not run where it did"
            elif each.is_group and _identities(look, each.name) != {pod.uid for pod in each.pods}:
                yield f"group {each.name} has other pods"
        gone = [there[pod.uid] for each in plan.evicted for pod in each.pods if pod.uid in there]
        for budget in budgets(self.cluster):
            if (count := budget.counts(gone)) > budget.allowed:
                yield f"disruption budget {budget.name} allows {budget.allowed} of {count} evictions"

    def lost(self, look: KubernetesInspection) -> str | None:
        """Why the policy has no place on the nodes of the plan."""
        return room_plan.still_places(look, self.plan)

    def hold(self, look: KubernetesInspection, found: PodGroup) -> None:
        """Keeps the nodes by taints, which its pods tolerate."""
        self._tolerate(found)
        if self.are_kept:
            return
        self.journal.write(HOLD)
        is_new, self.are_kept = False, True
        for key, names in ((ROOM, self.plan.nodes), (LINKS, self.plan.beside)):
            for name in names:
                node = look.nodes.get(name)
                if node is None or not is_held(node, key, self.plan.group):
                    hold(self.cluster, name, key, self.plan.group)
                    is_new = True
        if is_new:
            closed = (
                f", and {plural(len(self.plan.beside), 'other node')} near them are closed"
                if self.plan.beside
                else ""
            )
            self.tell(f"{plural(len(self.plan.nodes), 'node')} are kept for {self.plan.group}{closed}.")

    def _tolerate(self, group: PodGroup) -> None:
        self.journal.write(TOLERATE)
        for pod in group.pods:
            if not pod.node and not tolerates(pod, self.plan.group):
                tolerate(self.cluster, pod, self.plan.group)

    def disturb(self, look: KubernetesInspection, found: PodGroup) -> bool:
        """Evicts what is still there. A group some of whose pods have nodes is being bound: it needs nothing more."""
        if found.placed:
            return False
        there, evicted = {pod.uid: pod for pod in look.pods if pod.is_alive}, 0
        for each in self.plan.evicted:
            waits = [pod for pod in each.pods if pod.uid in there and not there[pod.uid].is_ending]
            if not waits:
                continue
            is_new = not self.journal.has(EVICT, each.name)
            self.journal.write(EVICT, each.name)
            for pod in waits if each.is_group else ():
                if there[pod.uid].notes.get(EVICTED) != self.plan.group:
                    mark(self.cluster, there[pod.uid], self.plan.group)
            gone = [self._evicted(there[pod.uid]) for pod in waits]
            evicted += sum(gone)
            if is_new and all(gone):
                self.tell(_sentence(each))
        return evicted > 0

    def _evicted(self, pod: Pod) -> bool:
        """Evicts a pod; False if a budget forbids it now."""
        name = f"{pod.namespace}/{pod.name}"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            self.cluster.post(f"{pod.path}/eviction", body)
        except BudgetError as error:
            self.blocked[name] = str(error).partition(": ")[2]
            return False
        except (NotFoundError, ConflictError):
            pass  # It has just ended by itself, or another pod has its name.
        self.blocked.pop(name, None)
        return True

    def too_late(self, look: KubernetesInspection, found: PodGroup) -> str:
        """Nothing is kept for the group any longer."""
        there = {pod.uid for pod in look.pods if pod.is_alive}
        pods = () if found.placed else (pod for each in self.plan.evicted for pod in each.pods)
        names = [pod.name for pod in pods if pod.uid in there]
        more = "" if len(names) <= LISTED else f" and {len(names) - LISTED} more"
        if names:
            why = f"{plural(len(names), 'pod')} must go first: {', '.join(names[:LISTED])}{more}"
            why += "".join(f"; {said}" for said in sorted(set(self.blocked.values()))[:1])
        else:
            why = f"the scheduler says: {wait_reason(found).words}"
        return (
            f"group {self.plan.group} has not started in time ({why.rstrip('.')}): nothing is kept for it now; "
            "make a new plan"
        )

    def free(self) -> None:
        """Keeps nothing for the group any longer."""
        plan, look = self.plan, self.look()
        kept = [
            name
            for name, node in look.nodes.items()
            if any(is_held(node, key, plan.group) for key in (ROOM, LINKS))
        ]
        stay = [pod for pod in look.pods if pod.notes.get(EVICTED) == plan.group and not pod.is_ending]
        if not kept and not stay:
            return
        self.journal.write(FREE)
        for pod in stay:
            mark(self.cluster, pod, None)
        for name in kept:
            release(self.cluster, name, plan.group)
        self.tell(f"{plural(len(kept), 'node')} are open again.")

    def outcome(self, found: PodGroup | None) -> Iterator[str]:
        """Where the group runs."""
        if found is None:
            raise NotAppliedError(
                f"group {self.plan.group} is not there any more: nothing is kept for it now"
            )
        yield _where(found, self.plan)


def _identities(look: KubernetesInspection, name: str) -> set[str]:
    """The pods of a group that have nodes and are not being deleted."""
    group = look.groups.get(name)
    return {pod.uid for pod in group.placed if not pod.is_ending} if group is not None else set()


def _sentence(each: Evicted) -> str:
    if each.is_group:
        return f"Group {each.name} is evicted, {plural(len(each.pods), 'pod')}."
    return f"Pod {each.name} is evicted."


def _where(group: PodGroup, plan: EvictionPlan) -> str:
    """Where the group runs, and whether that is where the plan says."""
    others = sorted(set(group.hosts) - set(plan.nodes))
    if not others:
        return f"Group {group.name} has the nodes of the plan."
    return (
        f"Group {group.name} has its nodes. The scheduler chose {plural(len(others), 'node')} besides those of the plan: "
        f"{', '.join(others[:LISTED])}."
    )
