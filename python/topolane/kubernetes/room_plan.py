"""A plan that makes room for a waiting group of pods: which groups and single pods to evict, at the least cost, and where it starts then.

`make_room` of `cluster.hypothetical` asks the engine with the policy of the group. Nothing here changes the cluster.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from topolane import texts
from topolane._engine import Decision, InputError, Machine, NoRoom
from topolane._engine import RoomPlan as Found
from topolane.cluster import room_files
from topolane.cluster.hosts import on_machine
from topolane.cluster.hypothetical import Cost, Counted, Holder, Hypothetical, NodeSlots, Question
from topolane.cluster.room_files import NoPlanError
from topolane.cluster.view import SHARED
from topolane.kubernetes.budgets import Budget
from topolane.kubernetes.explain import unknown
from topolane.kubernetes.fit import fits, held, ignored, may_use, slots
from topolane.kubernetes.inspection import KubernetesInspection, PodGroup
from topolane.kubernetes.objects import SIZE, Amounts, KubernetesNode, Pod
from topolane.kubernetes.status import liveness
from topolane.kubernetes.view import view
from topolane.policy import isolates
from topolane.units import plural

HOUR = 3600.0
AN_EVICTION, MOST, LIMIT = 1.0, 2**32 - 1, 2**62
"""What an eviction costs at least, node-seconds, so that nothing goes that need not; and the largest budget and amount that the engine
takes."""
KINDS = {"namespace": "NAME", "priorityclass": "NAME", "group": "NAMESPACE/NAME"}
"""What `--untouchable` may name, and how."""
STAYS = {"topolane.io/untouchable": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotations of pods that must stay."""
FIRST_THAT_STAYS = 1 << 32
"""The first identity of groups that stay, above those of units that may go."""
SYSTEM = 2_000_000_000
"""The priority from which on pods are the system's."""
RETURNING = {"DaemonSet": "of a DaemonSet", "Node": "of a node itself"}
"""Controllers whose pods come back to the same node, so that nothing is gained."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
"""Of a node, a namespace, a group or a pod."""


@dataclasses.dataclass(frozen=True)
class EvictedPod:
    """A pod that must go."""

    name: str
    """NAMESPACE/NAME."""
    uid: str
    """Identifies it: a later pod of that name has another one."""
    node: str


@dataclasses.dataclass(frozen=True)
class Evicted:
    """A group that must go whole, or a single pod. Times in seconds since 1970."""

    name: str
    """NAMESPACE/NAME of the group or of the pod."""
    is_group: bool
    pods: tuple[EvictedPod, ...]
    since: float
    """When the last of its pods got its node."""
    node_hours: float
    """What it has done since, which is lost."""


@dataclasses.dataclass(frozen=True)
class EvictionPlan:
    """A plan that makes room for a group. Costs in node-hours: the largest share of its node that a pod asks for, times hours."""

    FORMAT: ClassVar = "topolane-kubernetes-room-plan"
    VERSION: ClassVar = 1

    group: str
    """NAMESPACE/NAME."""
    pods: tuple[str, ...]
    """The identities of its pods."""
    size: int
    """How many of them must have nodes."""
    policy: str
    min_bandwidth: float
    nodes: tuple[str, ...]
    """The nodes that the group gets."""
    beside: tuple[str, ...]
    """Other nodes that stay closed until it runs: a group that started there could take links that it needs."""
    evicted: tuple[Evicted, ...]
    node_hours: float
    """What the plan costs."""
    least_node_hours: float
    """No plan costs less that evicts nothing of a higher priority."""
    time: float
    """When it was made."""


@dataclasses.dataclass(frozen=True)
class ProtectedPods:
    """Which pods the operator wants to stay."""

    named: frozenset[tuple[str, str]] = frozenset()
    """(kind, name): see `KINDS`."""
    any_priority: bool = False
    """Whether what has a higher priority than the waiting group may go too."""
    without_controller: bool = False
    """Whether pods may go that no controller replaces."""

    @classmethod
    def of(
        cls, words: Sequence[str], any_priority: bool = False, without_controller: bool = False
    ) -> ProtectedPods:
        """Of words such as `namespace=prod`. Raises InputError."""
        return cls(room_files.named(words, KINDS), any_priority, without_controller)

    def why(self, pod: Pod, priority: int) -> str | None:
        """Why a pod must stay if a group of that priority waits, as what follows `a pod`; None if it may go."""
        kind = str((pod.owner or {}).get("kind"))
        own = {("namespace", pod.namespace), ("priorityclass", str(pod.spec.get("priorityClassName")))}
        own |= {("group", pod.group)} if pod.group else set()
        if pod.priority >= SYSTEM or pod.namespace == "kube-system":
            return "of the system"
        if kind in RETURNING:
            return RETURNING[kind]
        if any(pod.notes.get(key) == value for key, value in STAYS.items()):
            return "whose annotation says so"
        if own & self.named:
            return "named by --untouchable"
        if pod.owner is None and not self.without_controller:
            return "without a controller"
        if not self.any_priority and pod.priority > priority:
            return "of higher priority"
        return None


@dataclasses.dataclass(frozen=True)
class Unit:
    """Pods that are evicted together: those of a group that have nodes, or a pod that is in none."""

    name: str
    group: int | None
    """The number of the group."""
    pods: tuple[Pod, ...]

    @property
    def rank(self) -> tuple[int, bool]:
        """What of a higher one goes only if others are not enough: its highest priority, and of one priority groups."""
        return max(pod.priority for pod in self.pods), self.group is not None

    def cost(self, look: KubernetesInspection) -> float:
        """What its eviction costs, node-seconds."""
        return sum(
            share_of(pod, look.nodes.get(pod.node)) * max(look.time - (pod.placed or look.time), 0.0)
            for pod in self.pods
        )


def share_of(pod: Pod, node: KubernetesNode | None) -> float:
    """The largest share of a node that a pod asks for, of any resource."""
    if node is None:
        return 1.0
    shares = (
        amount / node.has[name] for name, amount in pod.asks.items() if name != "pods" and node.has.get(name)
    )
    return min(max(shares, default=0.0), 1.0)


def units_of(look: KubernetesInspection, waiting: str) -> list[Unit]:
    """All that has nodes besides the waiting group, without pods that are being deleted."""
    group_of = {pod.uid: name for name, group in look.groups.items() for pod in group.pods}
    groups: dict[str, list[Pod]] = defaultdict(list)
    found = []
    for pod in look.pods:
        if not pod.holds_node or pod.is_ending:
            continue
        if pod.uid in group_of:
            groups[group_of[pod.uid]].append(pod)
        else:
            found.append(Unit(f"{pod.namespace}/{pod.name}", None, (pod,)))
    groups.pop(waiting, None)
    return [Unit(name, look.groups[name].number, tuple(pods)) for name, pods in groups.items()] + found


def make_plan(
    look: KubernetesInspection, budgets: Sequence[Budget], name: str, untouchable: ProtectedPods | None = None
) -> EvictionPlan:
    """The cheapest plan found for the waiting group NAMESPACE/NAME.

    Raises NoPlanError if there is none, InputError for a group that does not wait, and if no scheduler decides.
    """
    group, machine = waiting_group(look, name), _machine(look)
    policy = look.policy(group)[0]
    present = _Present(look, machine, group, budgets, untouchable or ProtectedPods())
    if len(present.eligible) < group.size:
        raise NoPlanError(
            f"there is no plan for {name}: it needs {plural(group.size, 'node')}, and may use {len(present.eligible)}{present.stay}"
        )
    found = present.cheapest(policy)
    if isinstance(found, NoRoom):
        raise NoPlanError(f"there is no plan for {name}: {found.reason}{present.stay}")
    gone = sorted((present.units[number] for number in found.requeued), key=lambda unit: unit.name)
    cost = sum(unit.cost(look) for unit in gone)
    nodes = sorted(found.decision.nodes)
    names = [machine.node_name(node) for node in nodes]
    closed = [machine.node_name(node) for node in _closed(machine, nodes, policy)]
    plan = EvictionPlan(
        group=name,
        pods=tuple(pod.uid for pod in group.pods),
        size=group.size,
        policy=policy,
        min_bandwidth=group.share,
        nodes=tuple(names),
        beside=tuple(each for each in closed if each in look.nodes),
        evicted=tuple(_evicted(unit, unit.cost(look)) for unit in gone),
        node_hours=round(cost / HOUR, 6),
        least_node_hours=round(min(found.least, cost) / HOUR, 6),
        time=look.time,
    )
    if lost := still_places(look, plan):
        raise NoPlanError(f"there is no plan for {name}: {lost}")
    return plan


def waiting_group(look: KubernetesInspection, name: str) -> PodGroup:
    """The waiting group of that name. Raises InputError if there is none, or if no plan can be made for such a group."""
    found = look.named(name)
    given = f"--room-for {texts.shown(name)}"
    if not found:
        raise InputError(f"{given}: {unknown(look, name)}")
    if len(found) > 1 or found[0].name != found[0].short:
        raise InputError(f"{given}: several groups have that name, and nodes are kept for a name")
    group = found[0]
    why = None
    if group.placed:
        why = f"the group does not wait: {len(group.placed)} of its {plural(group.size, 'pod')} have a node"
    elif len(group.pods) < group.size:
        why = f"the group has {len(group.pods)} of its {plural(group.size, 'pod')}"
    elif any(pod.is_gated for pod in group.pods):
        why = "its pods have scheduling gates, so the scheduler would not start it"
    elif "=" in group.first.notes.get(SIZE, "") or any(pod.asks != group.first.asks for pod in group.pods):
        why = "its pods differ; plans are made for groups of pods that are alike"
    elif left := ignored(group.first):
        why = f"plans are not made for groups with {left[0]}"
    if why is not None:
        raise InputError(f"{given}: {why}")
    return group


def still_places(look: KubernetesInspection, plan: EvictionPlan) -> str | None:
    """Why the policy would not place the group on the nodes of the plan once its pods are gone; None if it would.

    The engine is asked as topolane-scheduler asks it, with the slots of these nodes.
    """
    group, machine = look.groups[plan.group], _machine(look)
    gone = {pod.uid for each in plan.evicted for pod in each.pods}
    left = {each.name for each in plan.evicted if each.is_group}
    asked = _asked(look, machine, plan.policy, plan.min_bandwidth, left)
    stay = [pod for pod in look.pods if pod.uid not in gone and not pod.is_ending]
    there = slots(machine, look.nodes, stay, group.first, plan.size)
    wanted = {machine.node_named(node): node for node in plan.nodes}
    free = tuple(count if node in wanted else 0 for node, count in enumerate(there.free))
    lost = [name for node, name in wanted.items() if node is None or not free[node]]
    if lost:
        return f"{lost[0]} has no room for a pod of {plan.group}"
    answer = asked.decide(Question(group.number, plan.size, slots=NodeSlots(free, there.room)))
    return None if isinstance(answer, Decision) else f"{plan.policy} has no place on the nodes of the plan"


def _asked(
    look: KubernetesInspection,
    machine: Machine,
    policy: str,
    min_bandwidth: float,
    left: Collection[str] = (),
) -> Hypothetical:
    """What a policy would do without these groups, and without those all of whose pods are being deleted."""
    gone = {
        one.number
        for name, one in look.groups.items()
        if name in left or all(pod.is_ending for pod in one.placed)
    }
    seen = view(look)
    return Hypothetical.of(machine, seen, policy, min_bandwidth, counts_slots=True, gone=gone)


def _machine(look: KubernetesInspection) -> Machine:
    """The machine. Raises InputError if it is not known or if no scheduler decides."""
    alive = liveness(look)
    if alive.active is False:
        raise InputError((alive.why or "no scheduler decides").rstrip("."))
    if look.machine is None:
        raise InputError("; ".join(one.rstrip(".") for one in look.problems) or "the machine is not known")
    return look.machine


def _closed(machine: Machine, nodes: Sequence[int], policy: str) -> list[int]:
    """The other nodes of the lowest group that holds some, if the policy keeps others off links of that group."""
    own = machine.home(list(nodes))
    if own[0] <= 1 or not isolates(policy):
        return []
    others = sorted(set(range(machine.nodes)) - set(nodes))
    return [node for node in others if machine.home([*nodes, node]) == own]


def _evicted(unit: Unit, cost: float) -> Evicted:
    pods = tuple(EvictedPod(f"{pod.namespace}/{pod.name}", pod.uid, pod.node) for pod in unit.pods)
    since = max(pod.placed or pod.created for pod in unit.pods)
    return Evicted(unit.name, unit.group is not None, pods, since, round(cost / HOUR, 6))


class _Present:
    """All that runs, in the form that the engine takes."""

    def __init__(
        self,
        look: KubernetesInspection,
        machine: Machine,
        group: PodGroup,
        budgets: Sequence[Budget],
        untouchable: ProtectedPods,
    ) -> None:
        self._group, self._look, self._machine, self._budgets = group, look, machine, budgets
        self._priority = min(pod.priority for pod in group.pods)
        self._why: Counter[str] = Counter()
        self.units: dict[int, Unit] = {}
        """What may go, by the identity that the engine knows it by."""
        self._holders: dict[int, Holder] = {}
        """All that holds nodes or links, by the same identity."""
        may_go: list[Unit] = []
        stay: list[Unit] = []
        for unit in units_of(look, group.name):
            reason = self._reason(unit, untouchable)
            (may_go if reason is None else stay).append(unit)
            if reason is not None:
                self._why[reason] += 1
        base = held(pod for unit in stay for pod in unit.pods)
        self.eligible = [
            node for node in range(machine.nodes) if self._may_have(machine.node_name(node), base)
        ]
        """The nodes that the group could get if all left that may."""
        self._lay(sorted(may_go, key=self._importance), stay)

    @property
    def stay(self) -> str:
        """What must stay, as the end of a sentence."""
        if not self._why:
            return "" if self.units else " (nothing is in its place)"
        counted = ", ".join(f"{number} {reason}" for reason, number in sorted(self._why.items()))
        return f" ({sum(self._why.values())} groups and single pods must stay: {counted})"

    def _reason(self, unit: Unit, untouchable: ProtectedPods) -> str | None:
        """Why a unit must stay."""
        for pod in unit.pods:
            if reason := untouchable.why(pod, self._priority):
                return reason
        of_pods = [[budget.name for budget in self._budgets if budget.covers(pod)] for pod in unit.pods]
        if any(len(names) > 1 for names in of_pods) or len({name for names in of_pods for name in names}) > 1:
            return "under several disruption budgets"
        if any(budget.counts(unit.pods) > budget.allowed for budget in self._budgets):
            return "kept by a disruption budget"
        return None

    def _may_have(self, name: str, base: dict[str, Amounts]) -> bool:
        """Whether a node has room for a pod of the group if only what must stay is there."""
        node, asks = self._look.nodes.get(name), self._group.first.asks
        if node is None or not node.takes_pods or not may_use(self._group.first, node):
            return False
        if fits(asks, node.has, {}, 2) > 1:
            raise InputError(
                f"--room-for {self._group.name}: several of its pods fit on {name}; "
                "plans are made for groups each of whose pods takes a node"
            )
        return fits(asks, node.has, base.get(name, {}), 1) == 1

    def _importance(self, unit: Unit) -> tuple[int, bool, float, str]:
        """What goes first, as topolane-scheduler sorts it: of sets that cost the same the engine takes the one of earlier units."""
        return (*unit.rank, unit.cost(self._look), unit.name)

    def _lay(self, may_go: Iterable[Unit], stay: Iterable[Unit]) -> None:
        look = self._look
        taken: set[int] = set()
        stays = [unit.group for unit in stay if unit.group is not None]
        for number, unit in enumerate(may_go):
            holder = self._holder(unit)
            is_there = on_machine([pod.node for pod in unit.pods], self._machine)
            if not is_there or not taken.isdisjoint(holder.links):
                # It leaves nothing on the machine, or its links are not known: it stays where it is.
                stays += [] if unit.group is None else [unit.group]
                continue
            taken |= set(holder.links)
            self.units[number], self._holders[number] = unit, holder
        for number, group in enumerate((one for one in stays if look.holders.get(one)), FIRST_THAT_STAYS):
            self._holders[number] = self._holder(Unit("", group, ()))

    def _holder(self, unit: Unit) -> Holder:
        """The nodes of a unit, and the links of a group."""
        look, number = self._look, unit.group
        if number is None:
            return Holder(tuple(on_machine([pod.node for pod in unit.pods], self._machine)))
        own, nodes = look.allocations.get(number), tuple(sorted(set(look.holders.get(number, ()))))
        links, share = (own.links, own.bandwidth_share) if own else ((), 1.0)
        return Holder(nodes, links, share, look.closed.get(number, SHARED))

    def _counted(self) -> Counted:
        """What pods ask for that wait, what is left, and what each unit leaves."""
        asks = {key: amount for key, amount in self._group.first.asks.items() if amount > 0}
        taken = held(pod for pod in self._look.pods if not pod.is_ending)
        eligible = set(self.eligible)
        free, most = [], []
        for number in range(self._machine.nodes):
            name = self._machine.node_name(number)
            has = self._look.nodes[name].has if number in eligible else {}
            free += [_limited(has.get(key, 0) - taken.get(name, {}).get(key, 0)) for key in asks]
            most.append(int(number in eligible))
        left = {}
        for number, unit in self.units.items():
            there = [(self._machine.node_named(name), amounts) for name, amounts in held(unit.pods).items()]
            on = [(node, amounts) for node, amounts in there if node is not None]
            amounts = [_limited(amounts.get(key, 0)) for _, amounts in on for key in asks]
            left[number] = ([node for node, _ in on], amounts)
        return Counted([_limited(amount) for amount in asks.values()], free, most, left)

    def cheapest(self, policy: str) -> Found | NoRoom:
        """The engine's plan: the units of the lowest ranks that are enough, and of these the cheapest."""
        asked = Hypothetical(self._machine, policy, self._group.share, counts_slots=True)
        for number, holder in self._holders.items():
            asked.hold(number, holder)
        return asked.make_room(
            Question(self._group.number, self._group.size, eligible=self.eligible, stacked=True),
            self._costs(),
            [min(budget.allowed, MOST) for budget in self._budgets],
            counted=self._counted(),
        )

    def _costs(self) -> dict[int, Cost]:
        ranks = sorted({unit.rank for unit in self.units.values()})
        found = {}
        for number, unit in self.units.items():
            counts = [budget.counts(unit.pods) for budget in self._budgets]
            budget = next((at for at, count in enumerate(counts) if count), None)
            uses = 1 if budget is None else counts[budget]
            cost = max(unit.cost(self._look), AN_EVICTION)
            found[number] = Cost(cost, budget, uses, ranks.index(unit.rank))
        return found


def _limited(amount: int) -> int:
    return min(max(amount, -LIMIT), LIMIT)


def read(path: Path) -> EvictionPlan:
    """The plan in a file. Raises InputError."""
    source = str(path)
    given = room_files.read(path, EvictionPlan, "topolane k8s plan")
    rows = given.get("evicted")
    for at, row in enumerate(rows if isinstance(rows, list) else ()):
        if isinstance(row, dict):
            row["pods"] = room_files.rows_of(row, "pods", EvictedPod, f"{source}: evicted[{at}]")
    given["evicted"] = room_files.rows_of(given, "evicted", Evicted, source)
    for name in ("pods", "nodes", "beside"):
        given[name] = room_files.words_of(given, name, source)
    plan: EvictionPlan = room_files.made(EvictionPlan, given, source)
    pods = [pod for each in plan.evicted for pod in each.pods]
    for word in (plan.group, *(pod.name for pod in pods)):
        space, slash, name = word.partition("/")
        if not (slash and NAME.fullmatch(space) and NAME.fullmatch(name)):
            raise InputError(f"{source}: {texts.shown(word)} is not NAMESPACE/NAME")
    for word in (*plan.nodes, *plan.beside, *(pod.node for pod in pods)):
        if not NAME.fullmatch(word):
            raise InputError(f"{source}: {texts.shown(word)} is no name of a node")
    return plan
