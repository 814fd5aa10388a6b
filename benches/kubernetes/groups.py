"""Groups of pods as Jobs for each system, and their results."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from api import Api, Watch
from cluster import JOBS, RACK, Shape
from control_plane import Body

SYSTEMS = ("default", "kueue", "topolane")
GROUP = "bench/group"


@dataclasses.dataclass(frozen=True)
class Group:
    """A group of pods that belong together."""

    name: str
    size: int
    request: dict[str, str]
    """The resources that each pod requests."""
    required: bool = False
    """Whether the group must lie in one rack or wait; otherwise one rack is only preferred."""
    arrives: float = 0.0
    runs: float = 0.0
    """Its run time in seconds, from the start of its last pod."""
    slice_size: int = 0
    """The number of pods that must lie in one rack together; 0: the whole group."""


def job(group: Group, system: str, policy: str = "") -> Body:
    """The indexed Job for a group under a system."""
    notes: dict[str, str] = {}
    labels = {GROUP: group.name}
    if system != "default":
        notes[f"kueue.x-k8s.io/podset-{'required' if group.required else 'preferred'}-topology"] = RACK
    if system == "kueue" and group.slice_size:
        notes = {
            "kueue.x-k8s.io/podset-slice-required-topology": RACK,
            "kueue.x-k8s.io/podset-slice-size": str(group.slice_size),
        }
    if system == "topolane":
        notes |= {"topolane.io/group-size": str(group.size), "topolane.io/policy": policy}
    container = {
        "name": "c",
        "image": "none",
        "resources": {"requests": group.request, "limits": group.request},
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "topolane" if system == "topolane" else "default-scheduler",
    }
    queue = {"kueue.x-k8s.io/queue-name": "all"} if system == "kueue" else {}
    return {
        "metadata": {"name": group.name, "labels": labels | queue},
        "spec": {
            "suspend": system == "kueue",
            "parallelism": group.size,
            "completions": group.size,
            "completionMode": "Indexed",
            "backoffLimit": 1000,
            "template": {"metadata": {"labels": labels, "annotations": notes}, "spec": spec},
        },
    }


@dataclasses.dataclass
class Life:
    """The events of a group, as the API server reported them."""

    nodes: dict[str, int] = dataclasses.field(default_factory=dict)
    """The node of each pod that has one."""
    created: float = 0.0
    begun: float = 0.0
    """When the first pod got its node."""
    whole: float = 0.0
    """When the last pod got its node; 0 while a pod has none."""
    ended: float = 0.0


class Record:
    """Follows the pods of groups."""

    def __init__(self, api: Api, groups: Sequence[Group]) -> None:
        self.sizes = {group.name: group.size for group in groups}
        self.lives: dict[str, Life] = defaultdict(Life)
        self.bound: list[float] = []
        """The times at which pods got their nodes."""
        self.lock = threading.Lock()
        self.watch = Watch(api, self._noted)

    def _noted(self, kind: str, pod: Body) -> None:
        if kind == "LISTED":
            for one in pod["items"]:
                self._noted("ADDED", one)
            return
        name = pod["metadata"].get("labels", {}).get(GROUP)
        node = pod["spec"].get("nodeName")
        if name not in self.sizes or not node or kind == "DELETED":
            return
        with self.lock:
            life, uid = self.lives[name], pod["metadata"]["uid"]
            if uid in life.nodes:
                return
            now = time.monotonic()
            life.nodes[uid] = int(node[1:])
            life.begun = life.begun or now
            self.bound.append(now)
            if len(life.nodes) == self.sizes[name]:
                life.whole = now

    def count(self) -> int:
        """The number of pods that got a node."""
        with self.lock:
            return len(self.bound)

    def stop(self) -> None:
        self.watch.stop()


def submit(api: Api, group: Group, system: str, policy: str = "") -> None:
    api.post(JOBS, job(group, system, policy))


def hops(shape: Shape, nodes: Sequence[int]) -> float:
    """The average number of links between switches between two pods of a group: 0 in a rack, 2 in a block, 4
    beyond.
    """
    pairs = len(nodes) * (len(nodes) - 1) / 2
    if not pairs:
        return 0.0
    racks = Counter(shape.rack_of(node) for node in nodes)
    blocks = Counter(shape.block_of(node) for node in nodes)
    in_racks = sum(count * (count - 1) / 2 for count in racks.values())
    in_blocks = sum(count * (count - 1) / 2 for count in blocks.values())
    return (2 * (in_blocks - in_racks) + 4 * (pairs - in_blocks)) / pairs


def crossed(shape: Shape, nodes: Sequence[int]) -> set[str]:
    """The racks and blocks whose uplinks a group may use: those that hold some but not all of its nodes."""
    found = set()
    for kind, of in (("rack", shape.rack_of), ("block", shape.block_of)):
        held = {of(node) for node in nodes}
        found |= {f"{kind} {each}" for each in held} if len(held) > 1 else set()
    return found


@dataclasses.dataclass(frozen=True)
class Shared:
    """Groups whose links another group may have used at the same time."""

    groups: int
    pairs: int
    """The number of triples of a rack or block and two groups that crossed its uplinks at the same time."""


def shared(shape: Shape, lives: Sequence[Life]) -> Shared:
    """The groups that shared links."""
    whole = [life for life in lives if life.whole]
    crossing = [(life, crossed(shape, list(life.nodes.values()))) for life in whole]
    touched, pairs = set(), 0
    for (one, these), (other, those) in itertools.combinations(crossing, 2):
        together = max(one.begun, other.begun) < min(one.ended, other.ended)
        if together and these & those:
            pairs += len(these & those)
            touched |= {id(one), id(other)}
    return Shared(len(touched), pairs)
