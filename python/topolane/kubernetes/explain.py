"""Why a group of pods waits, or where it runs, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator

from topolane._engine import InputError, Machine
from topolane.cluster import explain as common
from topolane.cluster.decided import NO_ENGINE
from topolane.cluster.explain import FOR_EVER, LONGEST_HOSTS, Explanation, Why
from topolane.cluster.hypothetical import NodeSlots
from topolane.cluster.links import Words
from topolane.cluster.view import View, Waiting
from topolane.kubernetes.fit import ignored, slots
from topolane.kubernetes.inspection import KubernetesInspection, PodGroup
from topolane.kubernetes.objects import SIZE
from topolane.kubernetes.status import liveness
from topolane.kubernetes.view import view
from topolane.kubernetes.waiting import GroupWaitReason, wait_reason
from topolane.texts import shown
from topolane.units import clock, plural

WORDS = Words("group", "pod", "free slot", no_limit="")


def explain(look: KubernetesInspection, name: str) -> Explanation:
    """Explains the group NAMESPACE/NAME. Raises InputError if there is none."""
    found = explanations(look, name)
    if len(found) > 1:
        raise InputError(
            f"{len(found)} groups are called {name}: name one of {', '.join(each.job for each in found)}"
        )
    return found[0]


def explanations(look: KubernetesInspection, name: str) -> list[Explanation]:
    """Explains all groups that are called NAMESPACE/NAME. Raises InputError if there is none."""
    found = look.named(name)
    if not found:
        raise InputError(unknown(look, name))
    seen = view(look)
    said = [_running(look, seen, group) if group.placed else _waiting(look, seen, group) for group in found]
    alone = [pod for pod in look.pods if pod.group == name and pod.is_alive and not pod.is_grouped]
    if alone:
        said[-1].sentences.append(
            f"{plural(len(alone), 'pod')} of that name {'is' if len(alone) == 1 else 'are'} in no group: neither a label nor an "
            "annotation says so."
        )
    return said


def unknown(look: KubernetesInspection, name: str) -> str:
    """Why there is no group of that name."""
    if "/" not in name:
        return f"{shown(name)} is not NAMESPACE/GROUP"
    pods = [pod for pod in look.pods if pod.group == name]
    if not pods:
        return f"the cluster has no pod of a group {name}"
    if not any(pod.is_alive for pod in pods):
        return f"all pods of group {name} have ended"
    others = sorted({pod.scheduler for pod in pods} - {look.settings.scheduler})
    if others:
        return f"group {name} belongs to scheduler {', '.join(others)}, not to {look.settings.scheduler}"
    return f"the pods of {name} are no group: neither a label nor an annotation says so"


def _waiting(look: KubernetesInspection, seen: View, group: PodGroup) -> Explanation:
    job = next(one for one in seen.waiting if one.id == group.number)
    wait = wait_reason(group)
    since = f"Group {group.name} waits since {clock(group.since, look.time)}: {_there(group)}."
    more, way = list(_refused(group, job, wait)), None
    is_asked = wait.refused is not None and wait.refused.kind not in (*FOR_EVER, NO_ENGINE)
    if is_asked and look.machine is not None and _is_known(group):
        why = Why(look.machine, seen, job, _slots(look, look.machine, group), WORDS)
        way = why.way()
        more += why.now(way, job.policy, "it starts when the scheduler asks again")
    return common.waiting(job, "waiting", [since], [*more, *_health(look)], way)


def _there(group: PodGroup) -> str:
    if len(group.pods) < group.size:
        return f"it has {len(group.pods)} of its {plural(group.size, 'pod')}"
    return f"it has all its {plural(group.size, 'pod')}"


def _refused(group: PodGroup, job: Waiting, wait: GroupWaitReason) -> Iterator[str]:
    if wait.refused is None or wait.refused.kind == NO_ENGINE:
        yield (
            f"The scheduler says: {wait.sentence}."
            if wait.sentence
            else f"{wait.words[0].upper()}{wait.words[1:]}."
        )
        return
    yield f"The scheduler refused it: it asks for {plural(group.size, 'pod')} under {job.policy} and {wait.words}."
    for one in wait.refused.in_the_way:
        place, _, holders = one.partition(": ")
        yield f"In the way at {place}: {holders}."
    if wait.refused.kind in FOR_EVER:
        yield "Change the group or its policy, or delete it."


def _is_known(group: PodGroup) -> bool:
    """Whether all is known that the scheduler looks at: not of a group whose pods differ, or that asks for more than nodes."""
    first = group.first
    return not ignored(first) and "=" not in first.notes.get(SIZE, "") and first.share is not None


def _slots(
    look: KubernetesInspection, machine: Machine, group: PodGroup
) -> Callable[[Collection[int]], NodeSlots]:
    """The slots for its pods, as this reader counts them, once some groups have ended."""
    groups = {one.number: one for one in look.groups.values()}

    def free(gone: Collection[int]) -> NodeSlots:
        ended = {pod.uid for number in gone if number in groups for pod in groups[number].pods}
        stay = [pod for pod in look.pods if pod.uid not in ended]
        return slots(machine, look.nodes, stay, group.first, group.size)

    return free


def _running(look: KubernetesInspection, seen: View, group: PodGroup) -> Explanation:
    job = next(one for one in seen.running if one.id == group.number)
    hosts = plural(len(set(job.ranks)), "node")
    if look.machine is not None and len(job.hosts) <= LONGEST_HOSTS:
        hosts = job.hosts
    said = f"Group {job.name} runs on {hosts} since {clock(job.start, look.time)}."
    if job.slots < job.size:
        said = f"{job.slots} of the {plural(job.size, 'pod')} of group {job.name} have a node: {hosts}."
    found = common.running(look.machine, seen, job, [said], WORDS)
    return dataclasses.replace(found, sentences=found.sentences + _health(look))


def _health(look: KubernetesInspection) -> list[str]:
    """Why no scheduler decides, if none does."""
    found = liveness(look)
    return [found.why] if found.active is False and found.why else []
