"""The jobs of a cluster over time: what started and ended between two looks."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from topolane.kubernetes.export import JobRecord
from topolane.kubernetes.objects import Pod

SETTLED = 5.0
"""Seconds after which a job whose number of pods is not known has all of them."""


@dataclasses.dataclass(frozen=True)
class GroupStarted:
    """A job has nodes for all its pods. Times in seconds since 1970."""

    number: int
    name: str
    """NAMESPACE/NAME."""
    pods: tuple[Pod, ...]
    submit: float
    at: float
    """When its last pod got a node."""
    walltime: float | None
    is_missed: bool = False
    """Whether it ran before the first look at the cluster."""


@dataclasses.dataclass(frozen=True)
class GroupEnded:
    """A job holds its nodes no longer."""

    number: int
    at: float
    """By the records of its pods; or the time of the look, if these are gone."""


@dataclasses.dataclass(frozen=True)
class PlacedGroup:
    """A job that holds nodes."""

    number: int
    start: float


class GroupHistory:
    """Compares each look with what was known. placed: of the jobs that held nodes at the last one, by name. since: when
    the first look was, if this goes on from a log. Jobs that had ended by then are not in the log.
    """

    def __init__(
        self,
        placed: Mapping[str, PlacedGroup] | None = None,
        over: Mapping[str, float] | None = None,
        since: float = 0.0,
    ) -> None:
        self._is_first, self._since = placed is None, since
        self._here = dict(placed or {})
        self._over: dict[str, float] = dict(over or {})
        """When the last run of each job that has ended began."""
        self._last = max([group.number for group in self._here.values()], default=0)

    def follow(
        self, pods: Sequence[Pod], records: Mapping[str, JobRecord], now: float, last: int = 0
    ) -> list[GroupStarted | GroupEnded]:
        """What happened, in order. last: the highest number that was given before."""
        self._last = max(self._last, last)
        groups: dict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            if pod.key is not None:
                groups[pod.key].append(pod)
        _rename(self._here, groups)
        _rename(self._over, groups)
        found: list[GroupStarted | GroupEnded] = []
        for name, group in list(self._here.items()):
            mine = [pod for pod in groups.get(name, []) if pod.created <= group.start]
            if not any(pod.holds_node for pod in mine):
                del self._here[name]
                self._over[name] = group.start
                ends = [pod.ended for pod in mine if pod.ended is not None]
                gone = not mine or len(ends) < len(mine)
                found.append(GroupEnded(group.number, max(now if gone else max(ends), group.start)))
        for name, members in groups.items():
            if name not in self._here:
                found += self._new(name, members, records, now)
        self._over = {name: start for name, start in self._over.items() if name in groups}
        self._is_first = False
        return sorted(found, key=lambda event: (event.at, isinstance(event, GroupStarted), event.number))

    def _new(
        self, name: str, members: Sequence[Pod], records: Mapping[str, JobRecord], now: float
    ) -> list[GroupStarted | GroupEnded]:
        pods = [pod for pod in members if pod.created > self._over.get(name, 0.0) and not pod.is_gated]
        kept = [pod for pod in pods if pod.is_alive] or [pod for pod in pods if pod.phase == "Succeeded"]
        if not kept or not all(pod.node for pod in kept):
            return []
        record = records.get(kept[0].job or "")
        wanted = next((pod.size for pod in kept if pod.size), record.pods if record else None)
        alive = any(pod.is_alive for pod in kept)
        if alive and (len(kept) < wanted if wanted else now - max(pod.created for pod in kept) < SETTLED):
            return []
        start = max(pod.placed or pod.created for pod in kept)
        ended = max((pod.ended for pod in kept if pod.ended is not None), default=start)
        if not alive and (self._is_first or ended <= self._since):
            self._over[name] = start
            return []
        self._last += 1
        submit = min(pod.created for pod in kept)
        walltime = record.limit if record else None
        found: list[GroupStarted | GroupEnded] = [
            GroupStarted(
                self._last,
                name.partition("#")[0],
                tuple(kept),
                submit,
                start,
                walltime,
                is_missed=self._is_first,
            )
        ]
        if alive:
            self._here[name] = PlacedGroup(self._last, start)
            return found
        self._over[name] = start
        return [
            *found,
            GroupEnded(self._last, max(start, ended)),
        ]


def _rename(known: dict[str, Any], groups: Mapping[str, list[Pod]]) -> None:
    """Finds jobs of a log that has only their names."""
    for name in [each for each in known if each not in groups and "#" not in each]:
        same = [key for key in groups if key.partition("#")[0] == name]
        if len(same) == 1:
            known[same[0]] = known.pop(name)
