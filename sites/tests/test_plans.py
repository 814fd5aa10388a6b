"""Plans: who is moved where fits, is allowed, and pays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane.mpi.counts import Matrix
from topolane_sites.arrivals import ClusterArrival, make_room, place
from topolane_sites.bisect import Bisection
from topolane_sites.model import Guest, Host, WanLink
from topolane_sites.planner import make
from topolane_sites.plans import SitesPlan
from topolane_sites.problem import Problem, ProgramGroup

GIB = 1 << 30


def group(name: str, hosts: list[str], *, turns: float, size: float = 1e3, **fields) -> ProgramGroup:
    """A program of one rank a guest; everybody waits so often a second for everybody else."""
    count = len(hosts)
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    sender, receiver = np.array(pairs, int).reshape(len(pairs), 2).T
    matrix = Matrix(count, sender, receiver, np.tile([turns, turns * size, turns], (len(pairs), 1)))
    guests = tuple(Guest(f"{name}{at}", "", 2, GIB, host) for at, host in enumerate(hosts))
    given_ = {"sites": (), "remaining": 86400.0, "settled": float("inf")} | fields
    return ProgramGroup((name,), guests, matrix, np.arange(count), **given_)


def problem(*groups: ProgramGroup, hosts_each: int = 2, cores: int = 4, **fields) -> Problem:
    """Two sites, 10 ms and 1 Gbit/s apart."""
    hosts = [
        Host(f"{site[0]}{number}", site, cores, 64 * GIB)
        for site in ("east", "west")
        for number in range(hosts_each)
    ]
    given_ = {"down": frozenset(), "others": (), "skipped": {}} | fields
    return Problem(
        ("east", "west"), tuple(hosts), (WanLink(("east", "west"), 0.01, 1.25e8),), groups=groups, **given_
    )


def after(asked: Problem, plan: SitesPlan) -> dict[str, str | None]:
    """The host of every guest when all moves are made."""
    places = {guest.name: guest.host for one in asked.groups for guest in one.guests}
    for move in plan.moves:
        assert places[move.guest] == move.source
        places[move.guest] = move.target
    return places


def test_a_chatty_program_is_gathered_and_a_quiet_one_is_not() -> None:
    """Of two programs over both sites, the one that waits across is gathered; the other gives way or stays."""
    asked = problem(group("loud", ["e0", "w0"], turns=50.0), group("quiet", ["e1", "w1"], turns=0.001))
    places = after(asked, make(asked, "predicted-loss"))
    assert len({(places[f"loud{at}"] or "")[0] for at in range(2)}) == 1
    assert [places["quiet0"], places["quiet1"]] == ["e1", "w1"]


def test_plans_of_the_same_moves_have_the_same_id() -> None:
    """Whenever and of whatever traffic they are made. Plans of other moves have another one."""
    loud, quiet = group("loud", ["e0", "w0"], turns=50.0), group("quiet", ["e1", "w1"], turns=0.001)
    first, again = make(problem(loud, quiet), "predicted-loss"), make(problem(loud, quiet), "predicted-loss")
    louder = make(problem(group("loud", ["e0", "w0"], turns=60.0), quiet), "predicted-loss")
    assert first.moves
    assert first.id == again.id == louder.id
    assert first.seconds != again.seconds or first.made != again.made
    other = make(problem(group("other", ["e0", "w0"], turns=50.0), quiet), "predicted-loss")
    none = make(problem(quiet), "predicted-loss")
    assert len({first.id, other.id, none.id}) == 3


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"settled": 5.0}, "it rests after a move"),
        ({"remaining": 0.1}, "it will have ended before that pays"),
        ({"turns": 1e-6}, "it loses nothing"),
    ],
)
def test_what_does_not_pay_is_not_done(fields: dict[str, float], why: str) -> None:
    """The same program is left where it is, with one thing changed."""
    assert make(problem(group("p", ["e0", "w0"], turns=50.0)), "predicted-loss").moves
    asked = problem(group("p", ["e0", "w0"], **{"turns": 50.0, **fields}))
    assert make(asked, "predicted-loss").moves == (), why


def test_sites_that_are_not_allowed_and_hosts_that_are_silent_get_no_guest() -> None:
    """Allowed to use west alone it goes there; with the hosts of west silent it goes east, or nowhere."""
    one = group("p", ["e0", "w0"], turns=50.0)
    allowed = make(problem(replace(one, sites=("west",))), "predicted-loss")
    assert {move.target[0] for move in allowed.moves} == {"w"}
    silent = problem(group("p", ["e0", "e0", "w0"], turns=50.0), down=frozenset({"e0", "e1"}))
    assert all(move.target not in silent.down for move in make(silent, "predicted-loss").moves)


def test_guests_outside_the_question_keep_their_room() -> None:
    """A site full of others' guests: no guest moves there."""
    others = tuple(Guest(f"o{at}", "", 2, GIB, f"e{at // 2}") for at in range(3))
    asked = problem(group("p", ["e1", "w0", "w0", "w1"], turns=50.0), others=others)
    plan = make(asked, "predicted-loss")
    assert {place_[0] for place_ in after(asked, plan).values() if place_} == {"w"}


def test_programs_of_which_one_half_is_chatty_are_divided_where_little_crosses() -> None:
    """Six guests do not fit on one site of four: those that talk to each other are put together."""
    count, team = 6, np.array([0, 1, 0, 1, 0, 1])
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    sender, receiver = np.array(pairs).T
    turns = np.where(team[sender] == team[receiver], 50.0, 0.1)
    matrix = Matrix(count, sender, receiver, np.stack([turns, turns * 1e3, turns], 1))
    one = replace(group("p", ["e0", "e0", "w0", "w0", "w0", "e0"], turns=1.0), matrix=matrix)
    asked = problem(one, hosts_each=1, cores=8)
    places = after(asked, make(asked, "predicted-loss"))
    sites = [(places[f"p{at}"] or "")[0] for at in range(count)]
    assert max(Counter(sites).values()) <= 4
    crossing = sum(turns[at] for at, (a, b) in enumerate(pairs) if sites[a] != sites[b])
    before = sum(turns[at] for at, (a, b) in enumerate(pairs) if "eewwwe"[a] != "eewwwe"[b])
    assert crossing < before


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_plan_overbooks_a_host_or_loses_a_guest(data) -> None:
    """Any programs on any hosts with room for them, any policy: after all moves no host has more than it holds, no guest
    went to a silent host, and the plan is the same when it comes back from its JSON."""
    rooms = [name for name in ("e0", "e1", "w0", "w1") for _ in range(4)]
    order = data.draw(st.permutations(rooms))
    groups = []
    for name in data.draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4)):
        count = data.draw(st.integers(1, 4))
        hosts, order = order[:count], order[count:]
        groups.append(group(name, list(hosts), turns=data.draw(st.sampled_from([0.0, 1.0, 100.0]))))
    down = frozenset(data.draw(st.lists(st.sampled_from(["e0", "e1", "w0", "w1"]), max_size=2)))
    asked = problem(*groups, cores=8, down=down)
    policy = data.draw(st.sampled_from(["stay", "inter-site-traffic", "predicted-loss", "make-room"]))
    plan = make(asked, policy)
    places = after(asked, plan)
    assert max(Counter(places.values()).values(), default=0) <= 4
    assert all(move.target not in down and move.target != move.source for move in plan.moves)
    assert len({move.guest for move in plan.moves}) == len(plan.moves)
    assert policy not in ("stay", "make-room") or not plan.moves
    assert SitesPlan.of(plan.json()) == plan


def test_a_cluster_that_arrives_is_placed_together_if_it_will_talk() -> None:
    """Four guests where each site has room for three or more: together on the site that has room for all; on a site that
    is allowed; nowhere where there is no room."""
    others = (Guest("o", "", 2, GIB, "e0"),)
    asked = problem(group("p", ["e0"], turns=1.0), others=others)
    loud = ClusterArrival(4, 2, GIB, cut=Bisection(100.0, 1e6, 100.0, 50.0, 1e5))
    assert {host[0] for host in place(asked, loud, "predicted-loss")} == {"w"}
    assert place(asked, replace(loud, sites=("east",)), "predicted-loss") == []
    assert place(asked, replace(loud, guests=2, sites=("east",)), "predicted-loss") == ["e1", "e1"]
    assert place(asked, replace(loud, guests=7), "predicted-loss") == []
    nowhere = replace(asked, sites=("north", *asked.sites))
    assert place(nowhere, replace(loud, sites=("north",)), "predicted-loss") == []


def test_guests_that_come_to_a_running_cluster_go_to_its_sites_first() -> None:
    """The site with most of its guests, then its other site, then both together, then any; the quietest program too."""
    asked = problem(hosts_each=1, cores=4)
    quiet = ClusterArrival(2, 1, GIB, cluster_hosts=("w0", "w0", "e0"))
    assert place(asked, quiet, "predicted-loss") == ["w0", "w0"]
    assert place(asked, replace(quiet, cluster_hosts=("e0",)), "predicted-loss") == ["e0", "e0"]
    full = replace(asked, others=(Guest("o", "", 3, GIB, "w0"),))
    assert place(full, quiet, "predicted-loss") == ["e0", "e0"]
    assert sorted(place(full, replace(quiet, guests=5), "predicted-loss")) == ["e0"] * 4 + ["w0"]
    assert place(asked, replace(quiet, sites=("east",)), "predicted-loss") == ["e0", "e0"]
    assert place(asked, replace(quiet, cluster_hosts=("gone",)), "predicted-loss") != []
    assert place(full, replace(quiet, guests=6), "predicted-loss") == []


def test_a_program_makes_way_for_a_cluster_that_no_site_has_room_for() -> None:
    """Each site has room for three guests, and four arrive: the one program of a single guest joins the other's site, whatever
    that brings it, and all four fit where it was. Where a site has room for them, or none ever has, no guest moves."""
    asked = problem(group("p", ["e0"], turns=1.0), group("q", ["w0"], turns=1.0, settled=0.0))
    plan = make_room(asked, ClusterArrival(4, 2, GIB))
    (move,) = plan.moves
    assert move.source[0] != move.target[0] and {host[0] for host in plan.room} == {move.source[0]}
    assert len(plan.room) == 4 and "makes way for 4 guests" in move.why
    assert (
        make_room(asked, ClusterArrival(3, 2, GIB)).moves,
        len(make_room(asked, ClusterArrival(3, 2, GIB)).room),
    ) == (
        (),
        3,
    )
    assert (
        make_room(asked, ClusterArrival(5, 2, GIB)).moves,
        make_room(asked, ClusterArrival(5, 2, GIB)).room,
    ) == ((), ())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_room_is_on_one_site_and_overbooks_no_host(data) -> None:
    """Any programs, any arrival: what is promised is on one allowed site that is in service, for all guests, next to all others
    when all moves are made; at most three programs move, each smaller than what arrives and onto one site; without a
    promise no guest moves."""
    rooms = [name for name in ("e0", "e1", "w0", "w1") for _ in range(4)]
    order = data.draw(st.permutations(rooms))
    groups = []
    for name in data.draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)):
        count = data.draw(st.integers(1, 3))
        hosts, order = order[:count], order[count:]
        if hosts:
            groups.append(group(name, list(hosts), turns=1.0))
    down = frozenset(data.draw(st.lists(st.sampled_from(["e0", "e1", "w0", "w1"]), max_size=1)))
    sites = data.draw(st.sampled_from([(), ("east",), ("west",)]))
    arrival = ClusterArrival(
        data.draw(st.integers(1, 5)), data.draw(st.sampled_from([2, 4])), GIB, sites=sites
    )
    asked = problem(*groups, cores=8, down=down)
    plan = make_room(asked, arrival)
    places = after(asked, plan)
    taken = Counter({host: 2 * guests for host, guests in Counter(places.values()).items()})
    assert len(plan.room) in (0, arrival.guests) and (plan.room or not plan.moves)
    assert len({host[0] for host in plan.room}) <= 1 and not down & set(plan.room)
    assert all(not sites or host[0] == sites[0][0] for host in plan.room)
    taken.update({host: arrival.cores * guests for host, guests in Counter(plan.room).items()})
    assert max(taken.values(), default=0) <= 8
    moved = [one for one in asked.groups if any(move.programs == one.programs for move in plan.moves)]
    assert len(moved) <= 3
    for one in moved:
        assert 2 * len(one.guests) < arrival.guests * arrival.cores
        assert len({(places[guest.name] or "")[0] for guest in one.guests}) == 1
    assert SitesPlan.of(plan.json()) == plan
