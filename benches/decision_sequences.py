"""Single decisions in a random order drawn from a seed. All functions yield them as text."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from decision_names import BANDWIDTH_SHARE
from topolane import _engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GIB = 1 << 30
WIDEST_MOVED = 16
"""The widest groups for which moves are requested; wider ones take too long."""
QUESTIONS = 100
"""The most questions to a policy about making room."""
REQUESTS = ("whole", "shared", "group")
"""Whole nodes, some restricted to eligible ones; cores and memory of nodes; members of a group with given
slots.
"""


class Draw(random.Random):
    """Random draws that are the same in every version of Python: `random()` guarantees this, `sample()` does
    not.
    """

    def below(self, limit: int) -> int:
        """A random whole number from 0 up to, but without, the limit."""
        return int(self.random() * limit)

    def one(self, items: Sequence[Any]) -> Any:
        """A random item."""
        return items[self.below(len(items))]

    def width(self, nodes: int) -> int:
        """A random number of nodes for a job, up to a quarter of the machine; narrow jobs are most frequent."""
        return 1 + self.below(1 << self.below(max(nodes // 4, 2).bit_length()))

    def stretch(self, nodes: int) -> list[int]:
        """A random consecutive half of the nodes, or more."""
        first = self.below(nodes // 2)
        return list(range(first, first + nodes // 2))


def bits(value: Any) -> Any:
    """The value with each float replaced by a text of its exact bits."""
    if isinstance(value, list | tuple):
        return [bits(item) for item in value]
    return value.hex() if isinstance(value, float) else value


def placed(machine: _engine.Machine, policy: str, kind: str, seed: int, steps: int) -> Iterator[str]:
    """Decisions on requests that are placed and released on a `State`."""
    draw, held = Draw(seed), {}
    state = _engine.State(machine)
    slots = [4] * machine.nodes
    for step in range(steps):
        if held and draw.below(4) == 0:
            for node in held.pop(draw.one(sorted(held)))[0]:
                slots[node] += 1
            state = holding(machine, held, kind)
            continue
        width, options = request(draw, machine, kind, held, slots)
        answer = state.place(policy, width, id=step, seed=seed, **options)
        is_refused = isinstance(answer, _engine.Refusal)
        found = None if is_refused else (answer.nodes, answer.aph, answer.hop_bytes)
        yield f"{step} {bits(found)} {answer.name if is_refused else None}"
        if kind == "group" and step % 8 == 0:
            costs = state.costs(policy, width, seed=seed, **options)
            yield f"costs {None if isinstance(costs, _engine.Refusal) else bits(costs.tolist())}"
        if is_refused:
            continue
        links, share = [], 1.0
        if kind == "whole":
            links, share = answer.links, answer.bandwidth_share
            yield f"links {links} {bits(share)}"
        held[step] = (answer.nodes, options.get("share"), links, share)
        for node in answer.nodes:
            slots[node] -= 1
        state = holding(machine, {step: held[step]}, kind, state)
    if kind == "whole":
        yield from room_made(machine, policy, held, seed)
    if kind == "group":
        for nodes in (job[0] for job in held.values() if len(job[0]) <= WIDEST_MOVED):
            yield f"moves {bits(state.moves(nodes, slots, stacked=True))}"


def request(
    draw: Draw, machine: _engine.Machine, kind: str, held: dict[int, Any], slots: list[int]
) -> tuple[int, dict[str, Any]]:
    """A random width for a request, and its options."""
    width = draw.width(4 * machine.nodes if kind == "shared" else machine.nodes)
    if kind == "whole":
        return width, {"eligible": draw.stretch(machine.nodes) if draw.below(4) == 0 else None}
    stacked = draw.below(2) == 0
    if kind == "shared":
        return width, {"share": (1 + draw.below(8), draw.below(4) * GIB), "stacked": stacked}
    members = held[draw.one(sorted(held))][0] if held and draw.below(2) else []
    return width, {"members": members, "slots": slots, "stacked": stacked}


def holding(
    machine: _engine.Machine, held: dict[int, Any], kind: str, state: _engine.State | None = None
) -> _engine.State:
    """The state (by default an empty one) with these jobs added, because a `State` cannot release a job."""
    state = state or _engine.State(machine)
    for job in held.values():
        if kind == "group":
            state.overlay(job[0])
        else:
            state.hold(*job)
    return state


def room_made(machine: _engine.Machine, policy: str, held: dict[int, Any], seed: int) -> Iterator[str]:
    """Room made for requests by moving up to three jobs, after every third held job has ended; half of the
    jobs may be moved.
    """
    state = holding(machine, {job: held[job] for job in held if job % 3 == 1}, "whole")
    movable = [job for job in held if job % 3 == 2]
    running = [(job, held[job][0], held[job][2], float(len(held[job][0])), 0) for job in movable]
    for width in range(machine.nodes // 16, machine.nodes // 2, machine.nodes // 16):
        plan = _engine.make_room(
            state,
            policy,
            width,
            running,
            movable=movable,
            budgets=[3],
            questions=QUESTIONS,
            id=10**6,
            seed=seed,
        )
        if isinstance(plan, _engine.NoRoom):
            yield f"room {width} None {plan.impossible}"
            continue
        moved = [(one.id, one.nodes, one.links) for one in plan.moved]
        yield f"room {width} {(moved, plan.decision.nodes, plan.decision.links)} {bits((plan.cost, plan.least))}"


def scheduled(machine: _engine.Machine, policy: str, queue: str, seed: int, steps: int) -> Iterator[str]:
    """The starts of a `Scheduler` while jobs come, end, change and are withdrawn, and nodes and cables fail."""
    draw, now = Draw(seed), 0.0
    scheduler = _engine.Scheduler(machine, policy, queue, seed=seed)
    scheduler.adopt(10**6, [0, 1, 2], 0.0, 500.0)
    cables = range(machine.nodes, machine.links)
    for step in range(steps):
        now += draw.below(1000) / 7
        event = draw.below(12)
        running, waiting = sorted(job[0].id for job in scheduler.running), scheduler.waiting
        if event < 6:
            yield f"submit {submit(draw, machine, scheduler, step, now)}"
        elif event < 9 and running:
            scheduler.complete(draw.one(running))
        elif event == 9 and waiting:
            scheduler.cancel(draw.one(waiting))
        elif event == 10 and running:
            scheduler.set_walltime(draw.one(running), 100.0 + draw.below(5000))
        elif event == 11:
            scheduler.set_in_service(draw.below(machine.nodes), draw.below(2) == 0)
            out = scheduler.set_links_in_service([draw.one(cables)], draw.below(2) == 0)
            yield f"affected {out}"
        for given in scheduler.start(now):
            yield f"{given.id} {bits(now)} {given.nodes} {bits((given.links, given.bandwidth_share))}"
        yield f"{scheduler.waiting} {bits(scheduler.reservation)} {bits(scheduler.lent)}"


def submit(
    draw: Draw, machine: _engine.Machine, scheduler: _engine.Scheduler, job: int, now: float
) -> str | None:
    """Submits a job with random options. Returns the name of the reason if it is rejected for good."""
    width = draw.width(machine.nodes)
    options: dict[str, Any] = {
        "most": 2 * width if draw.below(6) == 0 else 0,
        "priority": float(draw.below(3)),
        "begin": now + 100.0 if draw.below(6) == 0 else 0.0,
        "share": (1 + draw.below(8), GIB) if draw.below(6) == 0 else None,
        "eligible": draw.stretch(machine.nodes) if draw.below(6) == 0 else None,
        BANDWIDTH_SHARE: draw.one([None, None, 0.5, 0.25]),
    }
    refusal = scheduler.submit(job, width, 60.0 + draw.below(7200), **options)
    return refusal and refusal.name


def mapped(machine: _engine.Machine, pattern: str, effort: str, seed: int) -> Iterator[str]:
    """The nodes of ranks that are mapped to every second node of the machine, in random order."""
    draw = Draw(seed)
    nodes = sorted(range(0, machine.nodes, 2), key=lambda _: draw.random())
    traffic = _engine.Traffic.pattern(pattern, len(nodes), seed)
    found = _engine.map_ranks(machine, nodes, traffic, effort=effort, seed=seed, threads=1)
    yield f"{found.slots.tolist()} {bits(found.hop_bytes)} {found.by}"


def chosen(machine: _engine.Machine, policy: str, seed: int) -> Iterator[str]:
    """Sites chosen for programs that run anywhere, and for some that arrive later."""
    draw = Draw(seed)
    for _ in range(20):
        programs = []
        for number in range(10):
            guests = 2 + draw.below(6)
            nodes = [draw.below(machine.nodes) for _ in range(guests)] if number < 7 else []
            cut = _engine.Cut(float(draw.below(500)), draw.random() * 1e8)
            programs.append(
                _engine.SiteProgram(guests, cut, cores=1 + draw.below(2), memory=GIB, nodes=nodes, dirty=1e6)
            )
        for choice in _engine.choose_sites(machine, programs, policy=policy):
            facts = (choice.nodes, choice.loss_now, choice.loss_then, choice.gain, choice.cost, choice.moves)
            yield str(bits(facts))
