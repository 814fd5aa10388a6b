"""One look at a cluster: its nodes, its pods by group, and topolane-scheduler's settings."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from topolane import texts, untrusted
from topolane._engine import InputError, Machine
from topolane.cluster.allocation import Allocation
from topolane.cluster.decided import Decided
from topolane.cluster.hosts import on_machine
from topolane.cluster.view import ISOLATED, ISOLATED_GLOBAL, UNKNOWN
from topolane.kubernetes.client import KubernetesCluster, NotFoundError
from topolane.kubernetes.machine import NODES, machine
from topolane.kubernetes.objects import BANDWIDTH, POLICY, KubernetesNode, Pod
from topolane.kubernetes.proofs import Proofs, proofs
from topolane.kubernetes.settings import SchedulerSettings, settings

PODS = "/api/v1/pods"
MOST_NAMED = 3
"""Groups that a sentence names."""


@dataclasses.dataclass(frozen=True)
class Where:
    """Where to look. None: as the scheduler's ConfigMap says."""

    config_map: str | None = None
    machine: str | None = None
    labels: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PodGroup:
    """Pods that are placed together."""

    name: str
    """NAMESPACE/NAME."""
    number: int
    pods: tuple[Pod, ...]
    """The pods that have not ended, in rank order."""
    placement: Decided | None = None
    """What the scheduler wrote last on one of its pods; None if nothing proves that it did."""
    is_proved: bool = False
    """Whether that is so of all pods that have a node. If not, it is not known which links are the group's."""

    @property
    def short(self) -> str:
        """NAMESPACE/NAME, without the kind that another group of that name has not."""
        return self.name.partition(" (")[0]

    @property
    def first(self) -> Pod:
        """The pod that stands for all."""
        return self.pods[0]

    @property
    def size(self) -> int:
        """How many pods it wants."""
        return next((pod.size for pod in self.pods if pod.size), len(self.pods))

    @property
    def placed(self) -> list[Pod]:
        """The pods that have a node."""
        return [pod for pod in self.pods if pod.node]

    @property
    def described(self) -> Pod | None:
        """The pod without a node of which the scheduler said most, and last; None if it said nothing of any."""
        said = [pod for pod in self.pods if pod.why and not pod.node]
        return max(
            said,
            key=lambda pod: (pod.said is not None, self.short in pod.why, pod.refused or 0.0),
            default=None,
        )

    @property
    def decided(self) -> Decided | None:
        """What the scheduler published: the placement of a group with nodes, or else its refusal."""
        if self.placement is not None or self.placed or self.described is None:
            return self.placement
        return self.described.said

    @property
    def hosts(self) -> list[str]:
        """The nodes in rank order, once per pod that has one."""
        return [pod.node for pod in self.placed]

    @property
    def since(self) -> float:
        """When the first pod came, or of a group with nodes: when the last pod got its node."""
        times = [pod.placed for pod in self.placed if pod.placed]
        return max(times) if times else min(pod.created for pod in self.pods)

    @property
    def begun(self) -> float:
        """When the first pod got its node, or came if none has one. It stays while the others are bound."""
        times = [pod.placed for pod in self.placed if pod.placed]
        return min(times) if times else self.since

    @property
    def share(self) -> float:
        """The least share of full bandwidth that it asks for. Raises InputError for one that topolane-scheduler refuses."""
        share = self.first.share
        if share is None:
            said = texts.shown(texts.printable(self.first.notes[BANDWIDTH]))
            raise InputError(f"{BANDWIDTH} of group {self.name} is over 0 and up to 1, not {said}")
        return share


@dataclasses.dataclass(frozen=True)
class Lease:
    """Which of several schedulers decides."""

    name: str
    holder: str
    renewed: float | None
    seconds: float
    """How long it counts after it was renewed."""


@dataclasses.dataclass(frozen=True)
class KubernetesInspection:
    """A cluster at one moment. What could not be read is None, and a sentence in `problems` says why."""

    time: float
    server: str
    settings: SchedulerSettings
    nodes: dict[str, KubernetesNode]
    pods: tuple[Pod, ...]
    machine: Machine | None
    lease: Lease | None
    problems: tuple[str, ...]
    proofs: Proofs = dataclasses.field(default_factory=Proofs)

    @cached_property
    def groups(self) -> dict[str, PodGroup]:
        """The groups of topolane-scheduler whose pods have not all ended, by name."""
        return groups_of(
            [pod for pod in self.pods if pod.is_grouped and pod.scheduler == self.settings.scheduler],
            self.proofs,
            self.pods,
        )

    def named(self, name: str) -> list[PodGroup]:
        """The groups that a user may mean by a name."""
        exact = self.groups.get(name)
        return [exact] if exact else [group for group in self.groups.values() if group.short == name]

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of groups by their numbers."""
        return {group.number: name for name, group in self.groups.items()}

    @cached_property
    def holders(self) -> dict[int, list[int]]:
        """The nodes of the machine on which the pods of each group lie, ascending."""
        found = {group.number: on_machine(group.hosts, self.machine) for group in self.groups.values()}
        return {number: nodes for number, nodes in found.items() if nodes}

    @cached_property
    def allocations(self) -> dict[int, Allocation]:
        """The links that groups own."""
        return self._links[0]

    @cached_property
    def contested(self) -> list[str]:
        """What is wrong with the links that groups say they own, by group."""
        return self._links[1]

    @cached_property
    def _links(self) -> tuple[dict[int, Allocation], list[str]]:
        found: dict[int, Allocation] = {}
        owners: dict[int, str] = {}
        wrong = []
        for group in self.groups.values():
            said = group.placement if group.is_proved else None
            if self.machine is None or said is None or not said.links or group.number not in self.holders:
                continue
            if any(link >= self.machine.links for link in said.links):
                wrong.append(f"{group.name} (the machine has {self.machine.links:,} links)")
            elif other := next((owners[link] for link in said.links if link in owners), None):
                wrong.append(f"{group.name} ({other} owns some of them)")
            else:
                links = tuple(dict.fromkeys(said.links))
                owners |= dict.fromkeys(links, group.name)
                found[group.number] = Allocation(frozenset(self.holders[group.number]), links, said.share)
        return found, wrong

    def link_use(self, group: PodGroup) -> str:
        """How a group uses links. That of unproved or contested links is not known."""
        said = group.placement if group.is_proved else None
        if said is None or (
            said.links
            and said.link_use not in (ISOLATED, ISOLATED_GLOBAL)
            and group.number not in self.allocations
        ):
            return UNKNOWN
        return said.link_use

    @cached_property
    def closed(self) -> dict[int, str]:
        """How the groups whose links no other group gets use them. Links that are not known count as isolated."""
        uses = {group.number: self.link_use(group) for group in self.groups.values() if group.placed}
        closed = {UNKNOWN: ISOLATED, ISOLATED: ISOLATED, ISOLATED_GLOBAL: ISOLATED_GLOBAL}
        return {number: closed[use] for number, use in uses.items() if use in closed}

    def policy(self, group: PodGroup) -> tuple[str, str | None]:
        """The policy of a group and what gave it, as the scheduler published them, or else what will give it one."""
        said = group.decided
        if said is not None:
            return said.policy, said.rule
        if group.first.policy:
            return group.first.policy, f"annotation {POLICY}"
        return self.settings.policy, self.settings.source or "the default of topolane-scheduler"


def groups_of(
    pods: Sequence[Pod], proved: Proofs | None = None, among: Sequence[Pod] | None = None
) -> dict[str, PodGroup]:
    """The groups of pods that have not ended, by name, those that came first in front.

    among: all pods of the cluster, by which a name is one group's alone or not.
    """
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.is_alive and pod.key is not None:
            found[pod.key].append(pod)
    names = _names({pod.key for pod in among or pods if pod.is_alive and pod.key is not None})
    order = sorted(found, key=lambda key: (min(pod.created for pod in found[key]), names[key]))
    return {
        names[key]: _group(names[key], number, found[key], proved or Proofs())
        for number, key in enumerate(order, 1)
    }


def _names(keys: set[str]) -> dict[str, str]:
    """What groups are called: NAMESPACE/NAME, and their kind and identity if others are called so too."""
    same: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        same[key.partition("#")[0]].append(key)
    names = {}
    for name, members in same.items():
        kinds = [key.partition("#")[2].partition(".") for key in members]
        for key, (kind, _, uid) in zip(members, kinds, strict=True):
            is_alone = sum(other == kind for other, *_ in kinds) == 1
            more = kind if is_alone else f"{kind} {uid}".rstrip()
            names[key] = name if len(members) == 1 else f"{name} ({more})"
    return names


def _group(name: str, number: int, pods: Sequence[Pod], proved: Proofs) -> PodGroup:
    """A group with what is proved of it: of several placements that of the highest revision."""
    said = {pod.uid: proved.placement(pod) for pod in pods}
    known = [placement for placement in said.values() if placement is not None]
    last = max(known, key=lambda each: each.revision, default=None)
    is_proved = bool(known) and all(said[pod.uid] for pod in pods if pod.node)

    def order(pod: Pod) -> tuple[int, float, str]:
        placement = said[pod.uid]
        rank = pod.rank if placement is None else placement.rank
        return (1 << 62 if rank is None else rank), pod.created, pod.name

    return PodGroup(name, number, tuple(sorted(pods, key=order)), last, is_proved)


def inspect(cluster: KubernetesCluster, where: Where) -> KubernetesInspection:
    """Reads a cluster. Raises ClusterError if it does not answer, and InputError for what the user named and is not there."""
    known = settings(cluster, where.config_map)
    problems: list[str] = []
    items = cluster.items(NODES)
    nodes = {node.name: node for node in untrusted.each(KubernetesNode.of, items, "node", problems)}
    pods = tuple(untrusted.each(Pod.of, cluster.items(PODS), "pod", problems))
    made = None
    try:
        made = machine(where.machine, where.labels, known, items)
    except InputError as error:
        if where.machine is not None or where.labels:
            raise
        problems.append(f"The machine is not known: {texts.sentence(str(error))}.")
    lease = _lease(cluster, known.lease, problems) if known.lease else None
    proved = proofs(cluster, known.keys)
    look = KubernetesInspection(
        time.time(), cluster.server, known, nodes, proved.bound(pods), made, lease, tuple(problems), proved
    )
    untrusted.add(problems, "The links that a group says it owns do not count", look.contested)
    return dataclasses.replace(look, problems=(*problems, *_unproved(look)))


def _unproved(look: KubernetesInspection) -> Iterator[str]:
    """What is not known because nothing proves it, in a sentence."""
    doubtful = [group.name for group in look.groups.values() if group.placed and not group.is_proved]
    if not doubtful:
        return
    more = f" and {len(doubtful) - MOST_NAMED} more" if len(doubtful) > MOST_NAMED else ""
    why = f": {look.proofs.why}" if look.proofs.why else ""
    yield (
        f"Nothing proves how topolane-scheduler placed {', '.join(doubtful[:MOST_NAMED])}{more}, so only the nodes of the pods "
        f"count, and the links are not known{why}."
    )


def _lease(cluster: KubernetesCluster, name: str, problems: list[str]) -> Lease | None:
    space, _, short = name.partition("/")
    try:
        spec = (
            cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/{short}").get("spec") or {}
        )
    except NotFoundError:
        return None
    except InputError as error:
        problems.append(f"{texts.sentence(str(error))}.")
        return None
    return Lease(
        name,
        untrusted.line(spec.get("holderIdentity"), untrusted.LONGEST_WORD),
        untrusted.when(spec.get("renewTime")),
        untrusted.finite(spec.get("leaseDurationSeconds")) or 15.0,
    )
