"""Why a group of pods waits, or where it runs, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from topolane._engine import Decision, InputError, Refusal
from topolane.cluster.hypothetical import Holder, Hypothetical, Question
from topolane.cluster.links import Words, in_the_way, links_used
from topolane.kubernetes.fit import ignored, slots
from topolane.kubernetes.inspection import Group, Inspection
from topolane.kubernetes.objects import SIZE
from topolane.kubernetes.status import links_of, liveness
from topolane.kubernetes.waiting import WaitReason, wait_reason
from topolane.texts import shown
from topolane.units import clock, plural

WORDS = Words("group", "pod", "free slot")
LONGEST_HOSTS = 60
"""Letters of a list of nodes that a sentence holds."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The state of a group, and the reasons for it. Times in seconds since 1970."""

    group: str
    state: str
    """`waiting`, `running`, or `partly` if some of its pods have a node."""
    policy: str
    policy_from: str
    """What gives it that policy."""
    kind: str | None = None
    """The kind of the policy's refusal, if that is why it waits."""
    said: str | None = None
    """The scheduler's sentence about a group that waits."""
    level: int | None = None
    """Of a running group: 1 if it lies in one leaf (T1), 2 if in one pod (T2), ..."""
    home: str | None = None
    """The lowest group of nodes that contains it."""
    nodes: list[str] = dataclasses.field(default_factory=list)
    """In rank order, once per pod."""
    links: list[int] = dataclasses.field(default_factory=list)
    """Its own links between switches, by the machine's numbers."""
    bandwidth_share: float | None = None
    """Its share of full bandwidth on them."""
    may_meet: list[str] = dataclasses.field(default_factory=list)
    """Other groups that may use the same links."""
    sentences: list[str] = dataclasses.field(default_factory=list)


def explain(look: Inspection, name: str) -> Explanation:
    """Explains the group NAMESPACE/NAME. Raises InputError if there is none."""
    found = explanations(look, name)
    if len(found) > 1:
        raise InputError(
            f"{len(found)} groups are called {name}: name one of {', '.join(each.group for each in found)}"
        )
    return found[0]


def explanations(look: Inspection, name: str) -> list[Explanation]:
    """Explains all groups that are called NAMESPACE/NAME. Raises InputError if there is none."""
    found = look.named(name)
    if not found:
        raise InputError(unknown(look, name))
    said = [_running(look, group) if group.placed else _waiting(look, group) for group in found]
    alone = [pod for pod in look.pods if pod.group == name and pod.is_alive and not pod.is_grouped]
    if alone:
        said[-1].sentences.append(
            f"{plural(len(alone), 'pod')} of that name {'is' if len(alone) == 1 else 'are'} in no group: neither a label nor an "
            "annotation says so."
        )
    return said


def unknown(look: Inspection, name: str) -> str:
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


def _waiting(look: Inspection, group: Group) -> Explanation:
    wait = wait_reason(group)
    policy, source = look.policy(group)
    said = [
        f"Group {group.name} waits since {clock(group.since, look.time)}: {_there(group)}.",
        f"Its policy is {policy} ({source}).",
        *_refused(group, policy, wait),
    ]
    if wait.kind not in (None, "never", "cannot-isolate"):
        said += _engine(look, group, policy)
    return Explanation(
        group.name,
        "waiting",
        policy,
        source,
        wait.kind,
        wait.sentence or None,
        sentences=said + _health(look),
    )


def _there(group: Group) -> str:
    if len(group.pods) < group.size:
        return f"it has {len(group.pods)} of its {plural(group.size, 'pod')}"
    return f"it has all its {plural(group.size, 'pod')}"


def _refused(group: Group, policy: str, wait: WaitReason) -> Iterator[str]:
    if wait.kind is None:
        yield (
            f"The scheduler says: {wait.sentence}."
            if wait.sentence
            else f"{wait.words[0].upper()}{wait.words[1:]}."
        )
        return
    yield f"The scheduler refused it: it asks for {plural(group.size, 'pod')} under {policy} and {wait.words}."
    for one in wait.in_the_way:
        place, _, holders = one.partition(": ")
        yield f"In the way at {place}: {holders}."
    if wait.kind in ("never", "cannot-isolate"):
        yield "Change the group or its policy, or delete it."


def _engine(look: Inspection, group: Group, policy: str) -> Iterator[str]:
    """What the same engine says here, of the slots as this reader counts them."""
    # A group whose pods differ, or that asks for more than nodes, is the scheduler's to judge.
    if look.machine is None or ignored(group.first) or "=" in group.first.notes.get(SIZE, ""):
        return
    try:
        asked = Hypothetical(look.machine, policy, group.share, counts_slots=True)
        for number, held in look.holders.items():
            own = look.allocations.get(number)
            isolated = number in look.closed
            links, share = (own.links, own.bandwidth_share) if own else ((), 1.0)
            asked.hold(number, Holder(tuple(held), links, share, isolated))
        there = slots(look.machine, look.nodes, look.pods, group.first, group.size)
        answer = asked.decide(Question(group.number, group.size, slots=there))
    except InputError:
        return
    free, idle = sum(there.free), sum(slot > 0 for slot in there.free)
    yield f"Now {plural(idle, 'node')} {'has' if idle == 1 else 'have'} {plural(free, 'free slot')} for its pods."
    if isinstance(answer, Decision):
        yield f"By now {policy} has a place for it: it starts when the scheduler asks again."
    elif isinstance(answer, Refusal) and answer.name == "would-share-links":
        yield from in_the_way(answer, group.size, look.names, WORDS)
    elif free < group.size:
        yield f"It lacks {plural(group.size - free, 'free slot')}."


def _running(look: Inspection, group: Group) -> Explanation:
    policy, source = look.policy(group)
    number, links = group.number, links_of(look)
    held, own = look.holders.get(number, []), look.allocations.get(number)
    level, home = links.home(held) if links and held else (None, None)
    used = links.of(number) if links and held else []
    hosts = _hosts(look, group, held)
    state = "running" if len(group.placed) >= group.size else "partly"
    said = [f"Group {group.name} runs on {hosts} since {clock(group.since, look.time)}."]
    if state == "partly":
        said = [
            f"{len(group.placed)} of the {plural(group.size, 'pod')} of group {group.name} have a node: {hosts}."
        ]
    said.append(f"Its policy is {policy} ({source}).")
    if links and held:
        said += links_used(f"Its nodes are in {home} (T{level})", look.allocations.get(number), used, "group")
    return Explanation(
        group.name,
        state,
        policy,
        source,
        level=level,
        home=home,
        nodes=group.hosts,
        links=list(own.links) if own else [],
        bandwidth_share=own.bandwidth_share if own else None,
        may_meet=sorted({other for _, others in used for other in others}),
        sentences=said + _health(look),
    )


def _hosts(look: Inspection, group: Group, held: list[int]) -> str:
    count = len(set(group.hosts))
    if look.machine is None or len(held) != count:
        return plural(count, "node")
    text = look.machine.hostlist(held)
    return text if len(text) <= LONGEST_HOSTS else plural(count, "node")


def _health(look: Inspection) -> list[str]:
    """Why no scheduler decides, if none does."""
    found = liveness(look)
    return [found.why] if found.active is False and found.why else []
