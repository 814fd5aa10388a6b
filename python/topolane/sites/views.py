"""Views of a manager and its programs, as values for JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from topolane import _engine
from topolane.mpi.counts import Matrix, WatchedProgram
from topolane.sites.bisect import Cut, crossing, halves, least_halves
from topolane.sites.manager import Manager

Shown = dict[str, Any]


def status(manager: Manager) -> Shown:
    """The state of the manager, its present activity and its latest events."""
    running = [one for one in manager.receiver.programs.values() if one.ended is None]
    return {
        "began": manager.began,
        "policy": manager.config.policy,
        "act": manager.act,
        "paused": manager.paused,
        "sites": sites(manager),
        "programs": [program(manager, one) for one in running],
        "moves": [dataclasses.asdict(move) for move in manager.moves.under_way],
        "waiting": sorted(manager.moves.moving - {move.guest for move in manager.moves.under_way}),
        "plan": manager.latest.json() if manager.latest else None,
        "events": manager.journal.newest(10),
        "frames": manager.receiver.frames,
    }


def sites(manager: Manager) -> list[Shown]:
    """Hosts, cores and guests of every site."""
    inventory = manager.inventory
    shown = []
    for name in inventory.sites:
        hosts = [host for host in inventory.hosts.values() if host.site == name]
        guests = inventory.running_on(host.name for host in hosts)
        shown.append(
            {
                "name": name,
                "hosts": len(hosts),
                "silent": sorted(inventory.away & {host.name for host in hosts}),
                "cores": sum(host.cores for host in hosts),
                "cores_used": sum(guest.cores for guest in guests),
                "memory": sum(host.memory for host in hosts),
                "memory_used": sum(guest.memory for guest in guests),
                "guests": len(guests),
                "links": [dataclasses.asdict(link) for link in inventory.links if name in link.between],
            }
        )
    return shown


def hosts(manager: Manager) -> list[Shown]:
    """Every host with its newest report."""
    inventory = manager.inventory
    return [
        {
            **dataclasses.asdict(host),
            "silent": host.name in inventory.away,
            "guests": sorted(guest.name for guest in inventory.running_on([host.name])),
            "report": inventory.reports.get(host.name),
        }
        for host in inventory.hosts.values()
    ]


def guests(manager: Manager) -> list[Shown]:
    """Every guest, its site, and its newest report."""
    inventory = manager.inventory
    return [
        {
            **dataclasses.asdict(guest),
            "site": inventory.site_of(guest.host),
            "moving": guest.name in manager.moves.moving,
            "report": inventory.guest_reports.get(guest.name),
        }
        for guest in inventory.guests.values()
    ]


def program(manager: Manager, one: WatchedProgram) -> Shown:
    """The figures of a program."""
    matrix, rates = one.matrix(), one.rates()
    in_mpi, skew = one.in_mpi()
    places = [manager.inventory.place_of(host) or "?" for host in one.hosts.values()]
    across = crossing(rates, _places(manager, one))
    return {
        "id": one.id,
        "name": one.name,
        "ranks": one.ranks,
        "reported": len(one.hosts),
        "connected": len(manager.receiver.connected(one.id)),
        "mpi": one.mpi,
        "started": one.started,
        "ended": one.ended,
        "seconds": one.observed,
        "messages": float(matrix.messages.sum()),
        "bytes": float(matrix.bytes.sum()),
        "messages_per_second": float(rates.messages.sum()),
        "bytes_per_second": float(rates.bytes.sum()),
        "between_sites": dataclasses.asdict(across),
        "in_mpi": in_mpi,
        "skew": skew,
        "dropped": sum(counts.dropped for counts in one.of_rank.values()),
        "sites": {place: places.count(place) for place in sorted(set(places))},
        "epoch": one.epoch,
        "calls": {str(call): figures for call, figures in one.calls().items()},
    }


def explain(manager: Manager, one: WatchedProgram) -> Shown:
    """Why a program runs where it runs: the traffic across its middle, its cost over a WAN, and the last
    plan.
    """
    total, rates = one.matrix(), one.rates()
    least = least_halves(total)
    plan = manager.latest
    judged = next((group for group in plan.judged if one.id in group.programs), None) if plan else None
    places = _places(manager, one)
    lost = _lost(manager, rates, places)
    return {
        "program": program(manager, one),
        "halves": _cut(manager, rates, halves(one.ranks), lost),
        "least_halves": _cut(manager, rates, least, lost),
        "now": _cut(manager, rates, places, lost),
        "judged": dataclasses.asdict(judged) if judged else None,
        "moves": [
            dataclasses.asdict(move) for move in (plan.moves if plan else ()) if one.id in move.programs
        ],
        "why": _why(manager, one),
    }


def _lost(manager: Manager, rates: Matrix, places: np.typing.NDArray[np.int64]) -> float:
    """Seconds lost per second now, if the program is on several sites."""
    names = manager.inventory.sites
    used = {names[place] for place in set(places.tolist()) if place < len(names)}
    asked = _asked(crossing(rates, places))
    links = (link for link in manager.inventory.links if used.issuperset(link.between))
    return max((asked.loss(link.latency, link.bandwidth, link.window) for link in links), default=0.0)


def _asked(cut: Cut) -> _engine.Cut:
    return _engine.Cut(cut.turns, cut.bytes, cut.pair_bursts, cut.pair_bytes)


def _cut(manager: Manager, rates: Matrix, part: np.typing.NDArray[np.int64], lost: float) -> Shown:
    """The present traffic per second across a division, and what a second of a run on one site loses over
    each link.

    lost: seconds lost per second now.
    """
    cut: Cut = crossing(rates, part)
    asked = _asked(cut).undisturbed(lost)
    return {
        **dataclasses.asdict(cut),
        "loss": {
            "-".join(link.between): asked.loss(link.latency, link.bandwidth, link.window)
            for link in manager.inventory.links
        },
    }


def _places(manager: Manager, one: WatchedProgram) -> np.typing.NDArray[np.int64]:
    """The number of every rank's site. An unknown rank has a site of its own."""
    names = manager.inventory.sites
    places = [manager.inventory.place_of(one.hosts.get(rank, "")) for rank in range(one.ranks)]
    return np.array([len(names) if place is None else names.index(place) for place in places], np.int64)


def _why(manager: Manager, one: WatchedProgram) -> str:
    """A sentence on the manager's assessment of the program."""
    if one.ended is not None:
        return "it has ended"
    problem = manager.current_problem()
    if one.id in problem.left_out:
        return f"it is left alone: {problem.left_out[one.id]}"
    if manager.paused:
        return "planning is paused"
    plan = manager.latest
    judged = next((group for group in plan.judged if one.id in group.programs), None) if plan else None
    if judged is None:
        return "it was not planned yet"
    lost = f"a second of its run on one site takes {judged.loss_now:.3f} s longer by the WAN"
    if not judged.moves:
        return f"{lost}; no other place brings more than the moves there must bring, so it stays"
    then = f"{judged.loss_then:.3f} s where it is to be"
    return f"{lost}, {then}; {judged.moves} guests are to move, which saves {judged.gain:.0f} s for {judged.cost:.1f} s"
