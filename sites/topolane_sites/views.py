"""Views of a manager and its programs, as values for JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from topolane import _engine
from topolane.mpi.counts import Matrix, WatchedProgram

from topolane_sites.bisect import Bisection, crossing, halves, least_halves
from topolane_sites.manager import Manager
from topolane_sites.plans import ProgramAssessment

Shown = dict[str, Any]
MOST_BARRED = 3
"""Hosts of which `explain` says that they lack a feature."""


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
        "tunnels": tunnels(manager),
        "doubts": {
            id: doubt
            for group in (manager.latest.judged if manager.latest else ())
            if (doubt := group.doubt())
            for id in group.programs
        },
    }


def tunnels(manager: Manager) -> list[Shown]:
    """The tunnels that have ended, or that had to be started again since the last `sites up`, by the last reports."""
    return [
        {"host": host, **one}
        for host, report in sorted(manager.inventory.reports.items())
        for one in report.get("tunnels", ())
        if not one["runs"] or one["restarts"]
    ]


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
    """Every guest, its site, its running programs, and its newest report."""
    inventory = manager.inventory
    programs = _programs_of_guests(manager)
    return [
        {
            **dataclasses.asdict(guest),
            "site": inventory.site_of(guest.host),
            "moving": guest.name in manager.moves.moving,
            "programs": programs.get(guest.name, []),
            "report": inventory.guest_reports.get(guest.name),
        }
        for guest in inventory.guests.values()
    ]


def _programs_of_guests(manager: Manager) -> dict[str, list[Shown]]:
    """The running programs that have a rank in a guest, by the guest's name."""
    found: dict[str, list[Shown]] = {}
    for one in manager.receiver.programs.values():
        if one.ended is None:
            guests = {manager.inventory.guest_of(host) for host in set(one.hosts.values())}
            for guest in guests - {None}:
                assert guest is not None
                found.setdefault(guest.name, []).append({"id": one.id, "name": one.name})
    return found


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
    scale = _scale(manager, rates, places, judged)
    return {
        "program": program(manager, one),
        "halves": _cut(manager, rates, halves(one.ranks), scale),
        "least_halves": _cut(manager, rates, least, scale),
        "now": _cut(manager, rates, places, scale),
        "judged": dataclasses.asdict(judged) if judged else None,
        "moves": [
            dataclasses.asdict(move) for move in (plan.moves if plan else ()) if one.id in move.programs
        ],
        "why": _why(manager, one),
    }


def _scale(
    manager: Manager,
    rates: Matrix,
    places: np.typing.NDArray[np.int64],
    judged: ProgramAssessment | None,
) -> float:
    """What a loss predicted from the present rates must be multiplied with, to be that of a second of the run on
    one site.
    """
    if judged is not None:
        return (1 + judged.loss_now) * judged.correction
    names = manager.inventory.sites
    used = {names[place] for place in set(places.tolist()) if place < len(names)}
    asked = _asked(crossing(rates, places))
    links = (link for link in manager.inventory.links if used.issuperset(link.between))
    lost = max((asked.loss(link.latency, link.bandwidth, link.window) for link in links), default=0.0)
    return 1 / max(1 - lost, 0.05)


def _asked(cut: Bisection) -> _engine.Cut:
    return _engine.Cut(cut.turns, cut.bytes, cut.pair_bursts, cut.pair_bytes)


def _cut(manager: Manager, rates: Matrix, part: np.typing.NDArray[np.int64], scale: float) -> Shown:
    """The present traffic per second across a division, and what a second of a run on one site loses over
    each link.
    """
    cut: Bisection = crossing(rates, part)
    asked = _asked(cut)
    return {
        **dataclasses.asdict(cut),
        "loss": {
            "-".join(link.between): scale * asked.loss(link.latency, link.bandwidth, link.window)
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
    if one.id in problem.skipped:
        return f"it is left alone: {problem.skipped[one.id]}"
    if manager.paused:
        return "planning is paused"
    plan = manager.latest
    judged = next((group for group in plan.judged if one.id in group.programs), None) if plan else None
    if judged is None:
        return "it was not planned yet"
    lost = f"a second of its run on one site takes {judged.wan_now:.3f} s longer by the WAN"
    notes = [_on_cores(judged)] if judged.compute > 0 else []
    notes += [judged.doubt(), *judged.barred[:MOST_BARRED]]
    said = "".join(f"; {note}" for note in notes if note)
    if not judged.moves:
        return f"{lost}; no other place brings more than the moves there must bring, so it stays{said}"
    then = f"{judged.wan_then:.3f} s where it is to be"
    saved = f"{judged.moves} guests are to move, which saves {judged.gain:.0f} s for {judged.cost:.1f} s"
    return f"{lost}, {then}; {saved}{said}"


def _on_cores(judged: ProgramAssessment) -> str:
    """A sentence on what it computes, and on which cores."""
    then = "" if judged.speed_then == judged.speed_now else f", {judged.speed_then:.2f} where it is to be"
    return (
        f"it computes for {100 * judged.compute:.0f} % of that second, and the speed of its slowest core is "
        f"{judged.speed_now:.2f}{then}"
    )
