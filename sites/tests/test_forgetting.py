"""What is over is kept for a while and then forgotten; what still runs, or has just ended, is not."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from topolane.mpi.address import Address
from topolane.mpi.counts import WatchedProgram
from topolane_sites.files import Config
from topolane_sites.manager import Manager
from topolane_sites.model import Guest, Host, Site, Stage
from topolane_sites.program_rows import program_row
from topolane_sites.state import ManagerDatabase, StateError

DAY = 86400.0
OF_E1 = {"site": "east", "cores": 8, "memory": 1 << 34}


class Kept:
    """A manager of one site, which can be made again from its database. `named` is a guest of its file."""

    def __init__(self, folder: Path, **settings: float) -> None:
        self.file = folder / "s.db"
        sites = (Site("east", (Host("e1", "east", 8, 1 << 34),)),)
        named = (Guest("named", "", 1, 1 << 20, None),)
        address = (Address(path=str(folder / "p.sock")),)
        self.config = Config(sites, (), named, (), address, f"sqlite:///{self.file}", **settings)
        self.said: list[str] = []
        self.begin()

    def begin(self) -> None:
        """A manager that knows what the one before has kept."""
        self.state = ManagerDatabase(self.config.state)
        self.manager = Manager(self.config, self.state, say=self.said.append)

    def again(self) -> None:
        """As after a restart."""
        self.state.close()
        self.begin()

    def look(self, times: int = 1) -> None:
        """Runs `times` rounds."""

        async def rounds() -> None:
            for _ in range(times):
                await self.manager.look()

        asyncio.run(rounds())

    def age(self, seconds: float) -> None:
        """Lets that time pass for what has ended, which the database knows."""
        self.execute(f"update move set changed = changed - {seconds}")
        self.execute(f"update program set ended = ended - {seconds}")
        self.execute(f"update value set value = value - {seconds} where kind = 'nowhere'")

    def execute(self, words: str) -> None:
        """Straight into the database."""
        with sqlite3.connect(self.file) as other:
            other.execute(words)
        other.close()

    def reported(self, *guests: str) -> None:
        """The host says that these guests run there."""
        rows = [{"name": name, "cores": 1, "memory": 1 << 20} for name in guests]
        self.manager.inventory.host_report("e1", {**OF_E1, "guests": rows}, may_add=True)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    one = Kept(tmp_path)
    yield one
    one.state.close()


def test_guests_that_have_run_nowhere_for_30_days_are_forgotten(kept: Kept) -> None:
    """Not those that run, that the file names, or whose cluster is known, and not before 30 days; one that has run
    again meanwhile counts from its new end."""
    of_cluster = [{"name": "ours", "cores": 1, "memory": 1 << 20}]
    kept.manager.inventory.put_cluster("c", {"guests": of_cluster})
    kept.reported("runs", "ended", "returns")
    kept.reported("runs")
    kept.look()
    kept.age(29 * DAY)
    kept.again()
    kept.reported("runs", "returns")
    kept.look()
    kept.reported("runs")
    kept.look()
    assert set(kept.manager.inventory.guests) == {"runs", "ended", "returns", "ours", "named"}
    kept.age(2 * DAY)
    for _ in range(2):
        kept.again()
        kept.reported("runs")
        kept.look()
        assert set(kept.manager.inventory.guests) == {"runs", "returns", "ours", "named"}
    assert set(kept.state.get("nowhere")) == {"returns"}


def test_moves_that_are_over_are_forgotten_and_others_are_not(kept: Kept) -> None:
    """A move that is not settled stays, however old it is."""
    for stage in (Stage.DONE, Stage.ROLLED_BACK, Stage.LOST, Stage.COPYING):
        move = kept.state.plan_move(f"g-{stage}", "e1", "e2", "why")
        kept.state.set_move(replace(move, stage=stage))
    kept.age(29 * DAY)
    kept.look()
    assert len(kept.state.moves()) == 4
    kept.age(2 * DAY)
    kept.look()
    assert [move.guest for move, _ in kept.state.moves()] == ["g-copying"]


def test_the_file_says_for_how_long(tmp_path: Path) -> None:
    """With `keep = 1` a program and a move that ended two days ago are gone."""
    kept = Kept(tmp_path, keep=1.0)
    kept.state.keep([program_row(WatchedProgram("p", "lu", 1, 1.0, ended=time.time()))], [])
    kept.look()
    assert kept.manager.program("p") is not None
    kept.age(2 * DAY)
    kept.look()
    assert kept.manager.program("p") is None
    kept.state.close()


def test_an_end_that_cannot_be_written_is_found_again(tmp_path: Path) -> None:
    """All ranks of a program have vanished, and the database refuses to store that: the program has not ended then, no
    event says so, and it is found ended when the database answers."""
    kept = Kept(tmp_path, silence=0.0)
    kept.manager.receiver.adopt(program := WatchedProgram("p", "lu", 1, 1.0))
    kept.state.keep([program_row(program)], [])
    kept.execute("create trigger no before update on program begin select raise(abort, 'disk is full'); end")
    with pytest.raises(StateError, match="disk is full"):
        kept.look(2)
    assert program.ended is None and kept.state.program("p")[0]["ended"] is None
    kept.execute("drop trigger no")
    kept.look()
    assert program.ended is not None and kept.state.program("p")[0]["ended"] == program.ended
    kept.manager.journal.write()
    (line,) = (line for line in kept.said if "program-gone" in line)
    assert line.endswith("program-gone  p  lu: no rank for 0 s")
    kept.state.close()
