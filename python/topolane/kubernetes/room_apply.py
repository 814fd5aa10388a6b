"""Carries out a plan that makes room for a group of pods (room_plan.py), with a journal next to the plan.

1. The pods of the group are allowed on the nodes that are kept for it: they get a toleration.
2. The nodes of the plan are kept for the group by a taint. What is evicted cannot come back to them, nor can anything else come.
3. What must go is evicted through the API server, which enforces disruption budgets. Before, an annotation shows the scheduler
   that a group goes whole, so that no pod by which its controller replaces one joins the pods that are still there.
4. The group is placed by topolane-scheduler, and the taints are removed.

Each step is in the journal before it is taken, and looks at the cluster before it changes anything. So after a crash `apply` goes on
where it was, and no pod is evicted twice for one plan: a pod is known by its identity, not by its name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from topolane.cluster.room_files import BEGIN, DONE, Journal, NotAppliedError, alone, journal_of, sum_of
from topolane.kubernetes import room_plan
from topolane.kubernetes.budgets import budgets
from topolane.kubernetes.client import BudgetError, Cluster, ConflictError, NotFoundError
from topolane.kubernetes.inspection import Group, Inspection, Where, inspect
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
from topolane.kubernetes.room_plan import Evicted, EvictedPod, RoomPlan
from topolane.kubernetes.waiting import wait_reason
from topolane.units import plural

TOLERATE, HOLD, EVICT, FREE = "tolerate", "hold", "evict", "free"
STEPS = (BEGIN, TOLERATE, HOLD, EVICT, FREE, DONE)
PAUSE = 1.0
"""Seconds between two looks at the cluster."""
LISTED = 5
"""Names in a sentence."""


def apply(
    path: Path, cluster: Cluster, where: Where, *, seconds: float, undo: bool, tell: Callable[[str], None]
) -> None:
    """Carries out the plan in a file, or goes on with it.

    seconds: how long to wait for pods to go, and for the group to be placed. undo: give the plan up instead. tell: gets a sentence
    for each step. Raises NotAppliedError if the plan is no longer true (then nothing was changed) or if the group does not start
    (then nothing is kept for it any more); InputError for bad input and if the API server refuses.
    """
    plan = room_plan.read(path)
    with alone(path, "topolane k8s apply"):
        journal = Journal(journal_of(path), sum_of(path), STEPS)
        applying = _Applying(plan, journal, cluster, where, seconds, tell)
        if undo:
            applying.undo()
        else:
            applying.run()


class _Applying:
    def __init__(
        self,
        plan: RoomPlan,
        journal: Journal,
        cluster: Cluster,
        where: Where,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        self.plan, self.journal, self.cluster, self.where, self.tell = plan, journal, cluster, where, tell
        self.end = time.monotonic() + seconds
        self.blocked: dict[str, str] = {}
        """Why pods could not be evicted, by their names."""

    def run(self) -> None:
        plan = self.plan
        if self.journal.has(DONE):
            self.tell("The plan has been carried out already, or given up: nothing is changed.")
            return
        if self.journal.has(BEGIN):
            self.tell(f"Going on with {self.journal.path}.")
        else:
            self._check()
            self.journal.write(BEGIN)
        look = self._look()
        group, late = self._found(look), None
        if group is not None and not self._is_bound(group):
            self._hold(look, group)
            group, late = self._evict_and_wait()
        self._free()
        self.journal.write(DONE)
        if late is not None:
            raise NotAppliedError(late)
        if group is None:
            raise NotAppliedError(f"group {plan.group} is not there any more: nothing is kept for it now")
        self.tell(_where(group, plan))

    def undo(self) -> None:
        """Keeps nothing for the group any longer, and evicts nothing more."""
        if not self.journal.has(BEGIN) or self.journal.has(DONE):
            self.tell("The plan is not being carried out: nothing is changed.")
            return
        self._free()
        self.journal.write(DONE)
        self.tell("The plan is given up.")

    def _look(self) -> Inspection:
        return inspect(self.cluster, self.where)

    def _found(self, look: Inspection) -> Group | None:
        """The group that the plan is for. One of the same name none of whose pods were there is another one."""
        group = look.groups.get(self.plan.group)
        known = group is not None and any(pod.uid in self.plan.pods for pod in group.pods)
        return group if known else None

    def _is_bound(self, group: Group) -> bool:
        return len(group.placed) >= self.plan.size

    def _check(self) -> None:
        """Raises NotAppliedError, with what has changed, if the plan is no longer true."""
        look, plan = self._look(), self.plan
        group, changed = self._found(look), []
        if group is None or group.placed or len(group.pods) < plan.size:
            changed.append(f"group {plan.group} does not wait any more")
        there = {pod.uid: pod for pod in look.pods if pod.is_alive and not pod.is_ending}
        for each in plan.evicted:
            if any(pod.uid not in there or there[pod.uid].node != pod.node for pod in each.pods):
                changed.append(f"{each.name} does not run where it did")
            elif each.is_group and _identities(look, each.name) != {pod.uid for pod in each.pods}:
                changed.append(f"group {each.name} has other pods")
        gone = [there[pod.uid] for each in plan.evicted for pod in each.pods if pod.uid in there]
        for budget in budgets(self.cluster):
            if (count := budget.counts(gone)) > budget.allowed:
                changed.append(
                    f"disruption budget {budget.name} allows {budget.allowed} of {count} evictions"
                )
        if not changed and (lost := room_plan.still_places(look, plan)):
            changed.append(lost)
        if changed:
            raise NotAppliedError(
                f"the plan is no longer true: {'; '.join(changed)}. Nothing is changed: make a new plan"
            )

    def _hold(self, look: Inspection, group: Group) -> None:
        self._tolerate(group)
        self.journal.write(HOLD)
        is_new = False
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

    def _tolerate(self, group: Group) -> None:
        self.journal.write(TOLERATE)
        for pod in group.pods:
            if not pod.node and not tolerates(pod, self.plan.group):
                tolerate(self.cluster, pod, self.plan.group)

    def _evict_and_wait(self) -> tuple[Group | None, str | None]:
        """The group once it has nodes or is gone, or why it took too long."""
        while True:
            look = self._look()
            group = self._found(look)
            if group is None or self._is_bound(group):
                return group, None
            self._tolerate(group)
            # A group some of whose pods have nodes is being bound: it needs nothing more.
            left, evicted = ([], 0) if group.placed else self._evict(look)
            if time.monotonic() > self.end and not evicted:
                return group, self._too_late(group, left)
            time.sleep(PAUSE)

    def _evict(self, look: Inspection) -> tuple[list[EvictedPod], int]:
        """Evicts what is still there. The pods that were, and how many of them were evicted now."""
        there = {pod.uid: pod for pod in look.pods if pod.is_alive}
        left, evicted = [pod for each in self.plan.evicted for pod in each.pods if pod.uid in there], 0
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
        return left, evicted

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

    def _too_late(self, group: Group, left: list[EvictedPod]) -> str:
        names = [pod.name for pod in left]
        more = "" if len(names) <= LISTED else f" and {len(names) - LISTED} more"
        if names:
            why = f"{plural(len(names), 'pod')} must go first: {', '.join(names[:LISTED])}{more}"
            why += "".join(f"; {said}" for said in sorted(set(self.blocked.values()))[:1])
        else:
            why = f"the scheduler says: {wait_reason(group).words}"
        return (
            f"group {self.plan.group} has not started in time ({why.rstrip('.')}): nothing is kept for it now; "
            "make a new plan"
        )

    def _free(self) -> None:
        """Keeps nothing for the group any longer."""
        plan, look = self.plan, self._look()
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


def _identities(look: Inspection, name: str) -> set[str]:
    """The pods of a group that have nodes and are not being deleted."""
    group = look.groups.get(name)
    return {pod.uid for pod in group.placed if not pod.is_ending} if group is not None else set()


def _sentence(each: Evicted) -> str:
    if each.is_group:
        return f"Group {each.name} is evicted, {plural(len(each.pods), 'pod')}."
    return f"Pod {each.name} is evicted."


def _where(group: Group, plan: RoomPlan) -> str:
    """Where the group runs, and whether that is where the plan says."""
    others = sorted(set(group.hosts) - set(plan.nodes))
    if not others:
        return f"Group {group.name} has the nodes of the plan."
    return (
        f"Group {group.name} has its nodes. The scheduler chose {plural(len(others), 'node')} besides those of the plan: "
        f"{', '.join(others[:LISTED])}."
    )
