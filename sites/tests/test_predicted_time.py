"""What a program is like, where that puts it, and whether predictions come true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from test_plans import after, group, problem
from topolane.mpi.counts import WatchedProgram
from topolane.mpi.frames import Records
from topolane_sites.accuracy import SETTLE, WATCH, Accuracy, refitted, summary
from topolane_sites.character import UNKNOWN, Character, character, effective_speeds
from topolane_sites.files import Config
from topolane_sites.inventory import Inventory
from topolane_sites.model import Guest, Host, Site
from topolane_sites.planner import make
from topolane_sites.plans import PlannedMove, ProgramAssessment, SitesPlan
from topolane_sites.state import ManagerDatabase

GIB = 1 << 30
EAST = Site("east", (Host("e0", "east", 4, GIB, speed=2.0), Host("e1", "east", 4, GIB)))
GUESTS = (Guest("g0", "", 1, GIB // 8, "e0"), Guest("g1", "", 1, GIB // 8, "e1"))
SPEEDS = {"e0": 2.0, "e1": 1.0}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ManagerDatabase]:
    opened = ManagerDatabase(f"sqlite:///{tmp_path}/s.db")
    yield opened
    opened.close()


@pytest.fixture
def inventory(state: ManagerDatabase) -> Inventory:
    return Inventory(Config((EAST,), (), GUESTS, (), (), ""), state)


def watched(*in_mpi: float, size: int = 1000, messages: int = 100) -> WatchedProgram:
    """A program of which every rank spent these shares of 20 s in MPI, and sent to the next one."""
    program = WatchedProgram("p", "p", len(in_mpi), started=0.0)
    for rank, share in enumerate(in_mpi):
        report(program, rank, share, size, messages)
    return program


def report(
    program: WatchedProgram, rank: int, share: float, size: int, messages: int, length: float = 20.0
) -> None:
    """An interval of a rank."""
    peers = [((rank + 1) % program.ranks, 0, messages, messages * size, messages)]
    program.rank(rank).add(Records.of(1e9, length, share * length, 0.0, peers))


def host_says(inventory: Inventory, host: str, guest: str, **use: float) -> None:
    """A report of a host on one guest."""
    row = {"name": guest, "cores": 1, "memory": GIB // 8, **use}
    inventory.host_report(host, {"guests": [row]}, may_add=False)


def test_computing_is_that_of_the_rank_with_most_of_it(inventory: Inventory) -> None:
    """A rank on a core of speed 2 that waits for a slow one shows that as MPI time: it computes 0.5 x 2, the slow one
    0.9 x 1. The least share in MPI is the slow one's. A rank that has not reported leaves both unknown."""
    found = character(inventory, [(watched(0.5, 0.1), GUESTS)], SPEEDS)
    assert (found.compute, found.in_mpi) == (pytest.approx(1.0), pytest.approx(0.1))
    silent = watched(0.5, 0.1)
    silent.ranks = 3
    assert character(inventory, [(silent, (*GUESTS, GUESTS[0]))], SPEEDS) == UNKNOWN


def test_a_rank_that_sleeps_computes_nothing(inventory: Inventory) -> None:
    """Out of MPI for 90 % of the time with a processor that is busy for 5 %: it computes for 5 %, and is 10 % in MPI."""
    host_says(inventory, "e1", "g1", cpu=0.05)
    found = character(inventory, [(watched(0.1), GUESTS[1:])], SPEEDS)
    assert (found.compute, found.in_mpi) == (pytest.approx(0.05), pytest.approx(0.1))


def test_what_others_use_of_a_host_makes_it_slower(inventory: Inventory) -> None:
    """Four cores, of which guests hold two: two busy ones more change nothing, six leave half of each; by its speed."""
    hosts = [Host("a", "s", 4, GIB, speed=1.5)]
    of = {busy: effective_speeds(hosts, {"a": 2}, {"a": busy})["a"] for busy in (0.0, 2.0, 6.0)}
    assert of == {0.0: 1.5, 2.0: 1.5, 6.0: 0.75}


def test_traffic_that_is_not_mpi_is_outside(inventory: Inventory) -> None:
    """Of 2 MB/s that a guest sends, 0.1 MB/s are MPI to the other guest; the rest, less headers, goes elsewhere."""
    host_says(inventory, "e0", "g0", cpu=1.0, sent=2e6, received=0.0)
    host_says(inventory, "e1", "g1", cpu=1.0, sent=1e5, received=1e5)
    program = watched(0.5, 0.5, size=20_000)
    sent = program.rates().bytes[0]
    found = character(inventory, [(program, GUESTS)], SPEEDS)
    assert found.outside == pytest.approx((2e6 - 1.1 * sent) / 2)


def test_a_program_that_computes_goes_to_faster_hosts_and_one_that_waits_does_not() -> None:
    """The hosts of west are twice as fast: who computes goes there, one with little to compute stays; a host that
    others keep busy gets no program, and one that lacks a feature of a guest neither, which is said."""
    computes, waits = Character(1.0, 0.0), Character(0.01, 0.9)
    speeds = {"e0": 1.0, "e1": 1.0, "w0": 2.0, "w1": 2.0}
    asked = problem(
        group("c", ["e0", "e0"], turns=1e-6, character=computes),
        group("w", ["e1", "e1"], turns=1e-6, character=waits),
        speeds=speeds,
    )
    places = after(asked, make(asked, "predicted-time"))
    assert {places["c0"], places["c1"]} <= {"w0", "w1"}
    assert {places["w0"], places["w1"]} == {"e1"}
    busy = replace(asked, busy={"w0": 4.0, "w1": 3.0})
    assert not make(busy, "predicted-time").moves
    needing = replace(
        asked.groups[0],
        guests=tuple(replace(one, features=("avx512f",)) for one in asked.groups[0].guests),
    )
    hosts = tuple(
        replace(one, features=("avx", "avx512f") if one.name[0] == "e" else ("avx",)) for one in asked.hosts
    )
    plan = make(replace(asked, groups=(needing,), hosts=hosts), "predicted-time")
    assert not plan.moves
    assert any("w0" in why and "avx512f" in why for why in plan.judged[0].barred)


def test_the_time_in_mpi_bounds_what_is_lost_and_the_doubt_is_said() -> None:
    """7 % in MPI and a prediction of far more: 7 % is lost, and where that comes from is said. The plan comes back from
    its JSON, and one of before these figures were kept does too."""
    asked = problem(group("p", ["e0", "w0"], turns=60.0, character=Character(0.0, 0.07)))
    plan = make(asked, "stay")
    (judged,) = plan.judged
    assert judged.wan_now / (1 + judged.loss_now) == pytest.approx(0.07)
    assert "measurements allow 7 %; the latency in the sites file is probably wrong" in judged.doubt()
    assert SitesPlan.of(plan.json()) == plan
    new = ("wan_now", "wan_then", "speed_now", "speed_then", "compute", "in_mpi", "correction", "barred")
    old = plan.json()
    old["judged"] = [{key: value for key, value in one.items() if key not in new} for one in old["judged"]]
    assert SitesPlan.of(old).judged[0].doubt() == ""
    believed = make(problem(group("p", ["e0", "w0"], turns=60.0, character=Character(0.0, 0.9))), "stay")
    assert believed.judged[0].doubt() == ""


def assessed(**fields: float) -> ProgramAssessment:
    """A program that loses half of its time to the WAN and is to lose nothing."""
    usual = {"turns": 0, "bytes": 0, "loss_now": 1.0, "loss_then": 0.0, "remaining": 9, "gain": 9, "cost": 1}
    given = usual | {"wan_now": 1.0, "wan_then": 0.0, "moves": 1} | fields
    return ProgramAssessment(("p",), 2, {"east": 1, "west": 1}, {"east": 2}, **given)


def test_a_correction_explains_the_measured_speed() -> None:
    """Predicted: a second that takes two takes one. Twice as fast: no correction. A quarter faster: of the two
    seconds 0.4 were lost, not 1. No faster, or where the WAN has no part in it: none can be known."""
    assert refitted(assessed(), 2.0) == pytest.approx(1.0)
    assert refitted(assessed(), 1.25) == pytest.approx(0.4)
    assert refitted(assessed(), 1.0) is None
    assert refitted(assessed(wan_now=0.0), 2.0) is None
    # On cores twice as fast a program that computes for one of two seconds saves half a second by these alone.
    faster = assessed(compute=1.0, speed_then=2.0, loss_then=-0.5)
    assert refitted(faster, 4.0) == pytest.approx(1.0)


class Compared:
    """A program of two ranks whose guest g1 moves to e0; `run` lets it run for a while."""

    def __init__(self, state: ManagerDatabase) -> None:
        self.now = 1000.0
        self.state, self.accuracy = state, Accuracy(state, lambda: self.now)
        self.program = watched(0.5, 0.5)
        move = PlannedMove("g1", "e1", "e0", ("p",), "")
        self.plan = SitesPlan("plan", 0.0, "predicted-time", (assessed(),), (move,), 0.0, {})
        self.accuracy.began(self.plan, {"p": self.program})
        self.host = "e1"

    def run(self, seconds: float, messages: int, size: int = 1000, moving: bool = False) -> None:
        for rank in range(2):
            report(self.program, rank, 0.5, size, messages, seconds)
        self.now += seconds
        self.look(moving)

    def look(self, moving: bool = False) -> None:
        self.accuracy.look({"p": self.program}, {"g1": self.host}, {"g1"} if moving else set())


def test_predicted_and_measured_gains_are_compared_and_kept(state: ManagerDatabase) -> None:
    """Predicted twice as fast. It sends 8 messages a second after the moves instead of 5: 1.6 times. The pair is there
    after a restart, and the correction is what both speeds say."""
    compared = Compared(state)
    compared.run(10, 50, moving=True)
    compared.host = "e0"
    compared.look()
    compared.run(SETTLE, 25)
    compared.run(WATCH, int(8 * WATCH))
    (one,) = Accuracy(state).comparisons
    rate = 100 / 20
    assert (one.predicted, one.measured) == (2.0, pytest.approx(8 / rate))
    assert Accuracy(state).corrections() == {"p": pytest.approx((2 - 2 / (8 / rate)) / 1)}
    answer = summary([one])
    assert answer["measured"] == 1 and answer["mean_error"] == pytest.approx(25)


def test_of_a_plan_that_is_made_again_the_newest_comparison_is_kept(state: ManagerDatabase) -> None:
    """A plan of the same moves has the same id. What is kept in memory and in the database is the same."""
    compared = Compared(state)
    for _ in range(2):
        compared.run(10, 50, moving=True)
        compared.host = "e0"
        compared.look()
        compared.run(SETTLE, 25)
        compared.run(WATCH, int(8 * WATCH))
        compared.accuracy.began(compared.plan, {"p": compared.program})
    assert len(compared.accuracy.comparisons) == 1
    assert compared.accuracy.comparisons == Accuracy(state).comparisons


@pytest.mark.parametrize(
    ("messages", "size", "why"),
    [(8, 5000, "another size than before"), (0, 1000, "less than 1 message per second")],
)
def test_what_cannot_be_known_is_not_counted(
    state: ManagerDatabase, messages: int, size: int, why: str
) -> None:
    """Messages of five times the size are another phase; no messages say nothing. Neither counts as an error."""
    compared = Compared(state)
    compared.host = "e0"
    compared.look()
    compared.run(SETTLE, 25)
    compared.run(WATCH, int(messages * WATCH), size)
    (one,) = compared.accuracy.comparisons
    assert one.measured is None and why in one.why
    assert summary([one])["mean_error"] is None


def test_moves_that_failed_are_not_compared_and_an_end_is_said(state: ManagerDatabase) -> None:
    """The guest is where it was: the prediction does not hold. A program that ends first gives a pair without a figure."""
    failed = Compared(state)
    failed.run(60, 300)
    failed.run(60, 300)
    assert failed.accuracy.comparisons == []
    ended = Compared(state)
    ended.program.ended = 1.0
    ended.look()
    assert "it ended before" in ended.accuracy.comparisons[0].why
