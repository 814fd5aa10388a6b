"""Checks whether nodes, cores, devices and links are given twice, from Slurm's lists and the wiring.

It shares no code with Topolane: it numbers the links again by the rule that the format of the machine file
states.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import links_in_tree as tree

ISOLATED, DEDICATED, OUTSIDE = "isolated", "dedicated", "outside"
"""The promises of a partition. ISOLATED: no link of a job is used by another. DEDICATED: the same, but
several jobs may cross a leaf or pod on links of their own. OUTSIDE: only that its jobs avoid the links of the
other two.
"""


@dataclasses.dataclass(frozen=True)
class Rule:
    """The rules for the jobs of a partition."""

    promise: str
    whole: bool
    """Whether each node belongs to a single job."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A job and its nodes at one moment."""

    job: int
    partition: str
    running: bool
    restarts: int
    nodes: frozenset[str]
    cores: Mapping[str, str]
    """By node, in Slurm's notation: 0,1,5-7."""
    devices: Mapping[str, str]
    """By node, in Slurm's notation: gpu:2(IDX:0-1)."""


def numbers(ranges: str) -> set[int]:
    """The numbers in a text like 0,1,5-7."""
    found: set[int] = set()
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def devices(written: str) -> set[str]:
    """The devices in a text like gpu:2(IDX:0-1),nic:1(IDX:3): those that have a number."""
    found = set()
    for name, indices in re.findall(r"([\w:]+?)(?::\d+)?\(IDX:([\d,-]+)\)", written):
        found |= {f"{name} {index}" for index in numbers(indices)}
    return found


def twice(parts: Sequence[Part], rules: Mapping[str, Rule]) -> Iterator[str]:
    """What two jobs hold at the same moment: whole nodes, cores or devices."""
    by_node: dict[str, list[Part]] = {}
    for part in parts:
        for node in part.nodes:
            by_node.setdefault(node, []).append(part)
    for node, there in by_node.items():
        if len(there) == 1:
            continue
        for part in there:
            if rules[part.partition].whole:
                others = ", ".join(str(other.job) for other in there if other is not part)
                yield f"node {node}, whole of job {part.job} ({part.partition}), has job {others} too"
        for what, owned in (("core", _cores), ("device", _devices)):
            counted = Counter(thing for part in there for thing in owned(part, node))
            for thing, count in counted.items():
                if count > 1:
                    jobs = ", ".join(str(part.job) for part in there if thing in owned(part, node))
                    yield f"{what} {thing} of node {node} is held by jobs {jobs}"


def _cores(part: Part, node: str) -> set[str]:
    return {str(core) for core in numbers(part.cores.get(node, ""))}


def _devices(part: Part, node: str) -> set[str]:
    return devices(part.devices.get(node, ""))


def may_meet(one: str, other: str, places: Iterable[str], rules: Mapping[str, Rule], prefix: str) -> bool:
    """Whether jobs of two partitions may cross the same switches or use the links of the same nodes."""
    promises = {rules[one].promise, rules[other].promise}
    if promises == {DEDICATED}:
        return not any(
            place.startswith(prefix) for place in places
        )  # the file of links shows whether they do
    return promises == {OUTSIDE}


Pairs = list[tuple[tree.Ran, tree.Ran, set[str]]]


def met(
    jobs: Iterable[tree.Ran], switches: Mapping[str, frozenset[str]], rules: Mapping[str, Rule], prefix: str
) -> tuple[Pairs, Pairs]:
    """The pairs of jobs that crossed the same switches or nodes at the same time: pairs that must not, and
    pairs that may.
    """
    wrong: Pairs = []
    allowed: Pairs = []
    for one, other, places in tree.meetings(jobs, switches):
        fine = may_meet(one.partition, other.partition, places, rules, prefix)
        (allowed if fine else wrong).append((one, other, places))
    return wrong, allowed


@dataclasses.dataclass(frozen=True)
class Wiring:
    """The links of a regular three-level tree, by number.

    First the link of each node; then those of each leaf, by switch of its pod; then those of each pod's
    switches, by core switch, with parallel cables one after another.
    """

    leaf: int
    pod: int
    pods: int
    switches: int
    """Switches in a pod; a leaf has a cable to each."""
    parents: int
    """Core switches above a switch of a pod."""
    cables: int
    """Parallel cables to each of them."""

    @property
    def nodes(self) -> int:
        return self.leaf * self.pod * self.pods

    @property
    def leaves(self) -> int:
        return self.pod * self.pods

    @property
    def links(self) -> int:
        return (
            self.nodes + self.leaves * self.switches + self.pods * self.switches * self.parents * self.cables
        )

    def place(self, link: int) -> tuple[str, int, int]:
        """The lower end of a link ("node", "leaf" or "pod"), its number, and the switch of the pod at an end."""
        if link < self.nodes:
            return "node", link, 0
        link -= self.nodes
        if link < self.leaves * self.switches:
            return "leaf", *divmod(link, self.switches)
        link -= self.leaves * self.switches
        pod, rest = divmod(link, self.switches * self.parents * self.cables)
        return "pod", pod, rest // (self.parents * self.cables)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A job in the plugin's file of links, with nodes and links by number."""

    job: int
    share: float
    nodes: tuple[int, ...]
    links: tuple[int, ...]


def entries(text: str) -> list[Entry]:
    """The jobs in a file of links. Raises ValueError if the file is incomplete."""
    body, _, said = text.rpartition("sum ")
    total = 14695981039346656037
    for byte in body.encode():
        total = (total ^ byte) * 1099511628211 % 2**64
    if not said.strip() or int(said, 16) != total:
        raise ValueError("its sum is wrong")
    head, *lines = body.splitlines()
    if not head.startswith("topolane-links 1 ") or int(head.split()[3]) != len(lines):
        raise ValueError(f"it begins with '{head}' and has {len(lines)} jobs")
    return [_entry(line) for line in lines]


def _entry(line: str) -> Entry:
    job, share, count, *rest = line.split()
    nodes = tuple(map(int, rest[: int(count)]))
    links = tuple(map(int, rest[int(count) + 1 :]))
    if len(links) != int(rest[int(count)]):
        raise ValueError(f"job {job} has {len(links)} links of {rest[int(count)]}")
    return Entry(int(job), float(share), nodes, links)


def links_twice(found: Sequence[Entry]) -> Iterator[str]:
    """Sentences on links that two jobs of one file own."""
    owners: dict[int, int] = {}
    for entry in found:
        for link in entry.links:
            if owners.setdefault(link, entry.job) != entry.job:
                yield f"link {link} is owned by jobs {owners[link]} and {entry.job}"


def too_few(entry: Entry, wiring: Wiring) -> Iterator[str]:
    """Sentences on where a job's links cannot carry what its nodes may send, and on links of groups that it
    does not cross.

    A group with n of the job's nodes needs as uplinks the smaller of the numbers of its nodes inside and
    outside the group, times the share. Two leaves of a pod need that number of switches to which both have a
    link, so that the nodes of one may send to those of the other. All links are as fast as a node's.
    """
    below = {
        "node": Counter(entry.nodes),
        "leaf": Counter(node // wiring.leaf for node in entry.nodes),
        "pod": Counter(node // (wiring.leaf * wiring.pod) for node in entry.nodes),
    }
    owned: dict[tuple[str, int], list[int]] = {}
    for link in entry.links:
        if link >= wiring.links:
            yield f"job {entry.job} owns link {link}, which there is not"
            continue
        kind, group, switch = wiring.place(link)
        owned.setdefault((kind, group), []).append(switch)
        if not 0 < below[kind][group] < len(entry.nodes):
            yield f"job {entry.job} owns link {link} of {kind} {group}, which it does not cross"
    for kind in ("leaf", "pod"):
        for group, inside in below[kind].items():
            wanted = _needed(min(inside, len(entry.nodes) - inside), entry.share)
            has = len(owned.get((kind, group), ()))
            if has < wanted:
                yield f"job {entry.job} has {has} links of {kind} {group}, {inside} of its {len(entry.nodes)} nodes need {wanted}"
    leaves = sorted(below["leaf"])
    for place, one in enumerate(leaves):
        for other in leaves[place + 1 :]:
            if one // wiring.pod != other // wiring.pod:
                continue
            wanted = _needed(min(below["leaf"][one], below["leaf"][other]), entry.share)
            common = set(owned.get(("leaf", one), ())) & set(owned.get(("leaf", other), ()))
            if len(common) < wanted:
                yield f"job {entry.job}: leaves {one} and {other} have {len(common)} switches in common and need {wanted}"


def _needed(nodes: int, share: float) -> int:
    return math.ceil(nodes * share - 1e-9)


def nodes_twice(
    jobs: Iterable[tree.Ran], rules: Mapping[str, Rule]
) -> list[tuple[tree.Ran, tree.Ran, set[str]]]:
    """Pairs of jobs that were on the same nodes at the same time, although one of them should have had the
    nodes to itself.
    """
    pairs = tree.overlaps((job, set(job.nodes)) for job in jobs)
    return [pair for pair in pairs if any(rules[job.partition].whole for job in pair[:2])]


def counts(log: Path) -> Counter[str]:
    """The number of jobs for each way of ending, from a log of jobcomp/filetxt."""
    return Counter(re.findall(r"JobState=(\S+)", log.read_text())) if log.exists() else Counter()
