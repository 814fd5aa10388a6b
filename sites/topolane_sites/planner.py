"""Makes a plan: the engine chooses hosts for a number of guests, and a partitioner chooses the guests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from topolane import _engine
from topolane._engine import Machine

from topolane_sites.bisect import Parts, contracted, crossing, divide
from topolane_sites.move_order import in_order
from topolane_sites.plans import PlannedMove, ProgramAssessment, SitesPlan, id_of
from topolane_sites.problem import Problem, ProgramGroup
from topolane_sites.processor import misfit

REFERENCE_CLOCK = 2.6e9
"""Clock of a core that the engine takes for a reference core: speed 1."""
MOST_APART = 32
"""Up to this many guests, every division in two is tried. Larger programs are assumed to be uniform."""


def make(problem: Problem, policy: str, arriving: Sequence[_engine.SiteProgram] = ()) -> SitesPlan:
    """The policy's plan, including arriving guests. Raises InputError for an unknown policy."""
    began = time.perf_counter()
    node_of = machine_of(problem)[1] if problem.hosts else {}
    weights = [_weights(problem, group) for group in problem.groups]
    cuts = [cut_of(group, weight) for group, weight in zip(problem.groups, weights)]
    asked = [_asked(problem, *of, node_of) for of in zip(problem.groups, weights, cuts)]
    choices, host_of = choose(problem, [*asked, *arriving], policy)
    site_of = {host.name: host.site for host in problem.hosts}
    room = tuple(host_of[node] for choice in choices[len(asked) :] for node in choice.nodes)
    judged, moves = [], {}
    for group, weight, cut, choice in zip(problem.groups, weights, cuts, choices):
        hosts = [host_of[node] for node in choice.nodes]
        one = ProgramAssessment(
            programs=group.programs,
            guests=len(group.guests),
            now=dict(Counter(site_of[guest.host or ""] for guest in group.guests)),
            then=dict(Counter(site_of[host] for host in hosts)),
            turns=cut.turns,
            bytes=cut.bytes,
            loss_now=choice.loss_now,
            loss_then=choice.loss_then,
            remaining=group.remaining,
            gain=choice.gain,
            cost=choice.cost,
            moves=choice.moves,
            wan_now=choice.wan_now,
            wan_then=choice.wan_then,
            speed_now=choice.speed_now,
            speed_then=choice.speed_then,
            compute=choice.compute,
            in_mpi=group.character.in_mpi,
            correction=choice.correction,
            barred=tuple(_barred(problem, group).values()),
        )
        judged.append(one)
        if choice.moves:
            moves[group.programs] = _moves(problem, group, weight, hosts, _why(one, len(room)))
    ordered, stuck = _possible(problem, moves)
    if room and stuck:  # some of the moves alone make no room
        ordered, room = [], ()
    return SitesPlan(
        id=id_of(ordered),
        made=time.time(),
        policy=policy,
        judged=tuple(judged),
        moves=tuple(ordered),
        seconds=time.perf_counter() - began,
        left_out={**problem.skipped, **stuck},
        room=room,
    )


def choose(
    problem: Problem, asked: list[_engine.SiteProgram], policy: str
) -> tuple[list[_engine.SiteChoice], dict[int, str]]:
    """The engine's choices for these programs, with all other guests in their places, and the host of every
    node.

    Empty while no host is known, since hosts may report themselves later.
    """
    if not problem.hosts:
        return [], {}
    machine, node_of = machine_of(problem)
    choices = _engine.choose_sites(
        machine,
        asked,
        policy=policy,
        held=[
            *(([node_of[one.host]], one.cores, one.memory) for one in problem.others if one.host in node_of),
            *(([node_of[host]], cores, 0) for host, cores in _taken(problem).items() if cores),
        ],
        down=[node_of[name] for name in problem.down if name in node_of],
        window=min((link.window for link in problem.links if link.window is not None), default=None),
    )
    return choices, {node: name for name, node in node_of.items()}


def _taken(problem: Problem) -> dict[str, int]:
    """Whole cores that other processes keep busy and no guest holds: no guest is put there."""
    used = Counter[str]()
    for guest in [*problem.others, *(guest for group in problem.groups for guest in group.guests)]:
        used[guest.host or ""] += guest.cores
    return {
        host.name: max(0, min(round(problem.busy.get(host.name, 0.0)), host.cores - used[host.name]))
        for host in problem.hosts
    }


def _barred(problem: Problem, group: ProgramGroup) -> dict[str, str]:
    """The hosts whose processors lack a feature that a guest uses, with a sentence for each."""
    found: dict[str, str] = {}
    needing = {guest.features: guest for guest in group.guests if guest.features}.values()
    for host in problem.hosts if needing else ():
        why = next((why for guest in needing if (why := misfit(guest, host))), "")
        if why:
            found[host.name] = why
    return found


def machine_of(problem: Problem) -> tuple[Machine, dict[str, int]]:
    """The sites as a machine of the engine, and the node of every host."""
    # Names of hosts need not be such as hostlists can tell: they are numbered.
    number = {host.name: at for at, host in enumerate(problem.hosts)}
    text = ['name = "sites"']
    for host in problem.hosts:
        text += ["[[node-kind]]", f'nodes = "h{number[host.name]}"', "sockets = 1"]
        text += [f"cores-per-socket = {host.cores}", f"memory = {host.memory}"]
        text += [f"core-speed = {REFERENCE_CLOCK * problem.speeds.get(host.name, host.speed)!r}"]
    used = [site for site in problem.sites if any(host.site == site for host in problem.hosts)]
    for site in used:
        nodes = ",".join(f"h{number[host.name]}" for host in problem.hosts if host.site == site)
        text += ["[[site]]", f'name = "s{used.index(site)}"']
        text += ["[[site.switch]]", f'name = "s{used.index(site)}"', f'nodes = "{nodes}"']
    for link in problem.links:
        if set(link.between) <= set(used):
            ends = ", ".join(f'"s{used.index(site)}"' for site in link.between)
            text += ["[[wan]]", f"between = [{ends}]"]
            text += [f"latency = {link.latency!r}", f"bandwidth = {link.bandwidth!r}"]
    machine = Machine.parse("\n".join(text) + "\n", "sites", "toml")
    nodes_ = {host.name: machine.node_named(f"h{number[host.name]}") for host in problem.hosts}
    return machine, {name: node for name, node in nodes_.items() if node is not None}


def cut_of(group: ProgramGroup, weights: NDArray[np.float64]) -> _engine.Cut:
    """The traffic across the best division of the guests into two halves."""
    half = (len(group.guests) + 1) // 2
    part = divide(weights, [half, len(group.guests) - half])
    return _across(group, part)


def _across(group: ProgramGroup, part: Parts) -> _engine.Cut:
    """The traffic across a division of the guests."""
    cut = crossing(group.matrix, part[group.guest_of])
    return _engine.Cut(cut.turns, cut.bytes, cut.pair_bursts, cut.pair_bytes)


def _weights(problem: Problem, group: ProgramGroup) -> NDArray[np.float64]:
    latency = max((link.latency for link in problem.links), default=0.0)
    bandwidth = min((link.bandwidth for link in problem.links), default=1.0)
    return contracted(group.matrix, group.guest_of, len(group.guests), latency, bandwidth)


def _apart(group: ProgramGroup, weights: NDArray[np.float64]) -> list[_engine.Cut]:
    """The traffic across the best division into 1, 2, ... guests and the rest; for large programs as far as
    is cheap.
    """
    count = len(group.guests)
    sizes = range(1, min(count // 2, MOST_APART) + 1)
    return [_across(group, divide(weights, [size, count - size])) for size in sizes]


def _asked(
    problem: Problem,
    group: ProgramGroup,
    weights: NDArray[np.float64],
    cut: _engine.Cut,
    node_of: dict[str, int],
) -> _engine.SiteProgram:
    used = [site for site in problem.sites if any(host.site == site for host in problem.hosts)]
    now = _sites_now(problem, group)
    best = divide(weights, np.bincount(now, minlength=len(problem.sites)).tolist(), now)
    return _engine.SiteProgram(
        len(group.guests),
        cut,
        apart=_apart(group, weights),
        here=_across(group, now),
        exchange=int((best != now).sum()),
        cores=max(guest.cores for guest in group.guests),
        memory=max(guest.memory for guest in group.guests),
        nodes=[node_of[guest.host or ""] for guest in group.guests],
        sites=[used.index(site) for site in group.sites if site in used],
        dirty=max(guest.dirty or 0.0 for guest in group.guests),
        remaining=group.remaining,
        settled=group.settled,
        compute=group.character.compute,
        in_mpi=group.character.in_mpi,
        correction=group.correction,
        outside=group.character.outside,
        home=used.index(group.home) if group.home in used else None,
        barred=[node_of[host] for host in _barred(problem, group)],
    )


def _sites_now(problem: Problem, group: ProgramGroup) -> Parts:
    site_of = {host.name: host.site for host in problem.hosts}
    return np.array([problem.sites.index(site_of[guest.host or ""]) for guest in group.guests])


def _moves(
    problem: Problem, group: ProgramGroup, weights: NDArray[np.float64], hosts: list[str], why: str
) -> list[PlannedMove]:
    """Assigns guests to the chosen hosts, for the least traffic between sites, then the fewest moves."""
    site_of = {host.name: host.site for host in problem.hosts}
    sizes = Counter(site_of[host] for host in hosts)
    part = divide(weights, [sizes[site] for site in problem.sites], _sites_now(problem, group))
    moves = []
    for place, site in enumerate(problem.sites):
        room = Counter(host for host in hosts if site_of[host] == site)
        coming = []
        for at in np.flatnonzero(part == place):
            guest = group.guests[at]
            if guest.host is not None and room[guest.host] > 0:
                room[guest.host] -= 1
            else:
                coming.append(guest)
        for guest, target in zip(coming, room.elements()):
            moves.append(PlannedMove(guest.name, guest.host or "", target, group.programs, why))
    return moves


def _possible(
    problem: Problem, moves: dict[tuple[str, ...], list[PlannedMove]]
) -> tuple[list[PlannedMove], dict[str, str]]:
    """The moves in an order in which each finds room, and the programs whose moves never do, with the reason."""
    guests = [*problem.others, *(guest for group in problem.groups for guest in group.guests)]
    stuck: dict[str, str] = {}
    while True:
        ordered, left = in_order([one for each in moves.values() for one in each], guests, problem.hosts)
        if not left:
            return ordered, stuck
        for programs in [programs for programs, each in moves.items() if any(one in left for one in each)]:
            del moves[programs]
            reason = "its guests would change places, but no host has room for one more meanwhile"
            stuck |= dict.fromkeys(programs, reason)


def _why(one: ProgramAssessment, arriving: int) -> str:
    """The reason for the journal. arriving: how many arriving guests it makes room for."""
    if arriving:
        return (
            f"{', '.join(one.programs)}: makes way for {arriving} guests that arrive; costs {one.cost:.1f} s"
        )
    return (
        f"{', '.join(one.programs)}: {one.reason()}; "
        f"of {one.remaining:.0f} s to run that saves {one.gain:.0f} s and costs {one.cost:.1f} s"
    )
