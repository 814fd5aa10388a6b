"""Carrying out moves: what the journal says is what is so, also where the database or a driver does not answer."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="topolane-sites is not installed with what it needs")
pytest.importorskip("qemu.qmp", reason="topolane-sites is not installed with what it needs")
from topolane.mpi.address import Address
from topolane_sites.files import Config
from topolane_sites.inventory import Inventory
from topolane_sites.model import Guest, Host, Site, Stage
from topolane_sites.movers import MoveFailed, mover
from topolane_sites.movers.qmp import _monitor
from topolane_sites.moves import Moves
from topolane_sites.plans import PlannedMove
from topolane_sites.qemu import QemuFolder, QemuMachine
from topolane_sites.state import ManagerDatabase, StateError


class Made:
    """Moves of one guest, from e1 to w1."""

    def __init__(self, folder: Path, driver: str, addresses: tuple[str, str]) -> None:
        hosts = [Host(name, name[0], 4, 8 << 30, driver, at) for name, at in zip(("e1", "w1"), addresses)]
        sites = tuple(Site(host.site, (host,)) for host in hosts)
        guests = (Guest("g", "c", 1, 1 << 30, "e1"), Guest("h", "c", 1, 1 << 30, "e1"))
        config = Config(sites, (), guests, (Address(path="/a"),), (), f"sqlite:///{folder}/s.db")
        self.file = folder / "s.db"
        self.state = ManagerDatabase(config.state)
        self.inventory = Inventory(config, self.state)
        self.events: list[str] = []
        self.moves = Moves(self.state, self.inventory, 1, lambda kind, *_: self.events.append(kind))

    def add(self, guest: str) -> None:
        """Journals a move."""
        assert self.moves.add(PlannedMove(guest, "e1", "w1", ("p",), "why"))

    def refuse(self, stage: str) -> Callable[[], None]:
        """Lets the database refuse a stage of moves, until what it answers is called."""
        self._execute(
            f"create trigger no before update on move when new.stage = '{stage}' "
            "begin select raise(abort, 'disk is full'); end"
        )
        return lambda: self._execute("drop trigger no")

    def stages(self) -> list[str]:
        """Of all moves, the newest first."""
        return [move.stage for move, _ in self.state.moves()]

    def _execute(self, words: str) -> None:
        with sqlite3.connect(self.file) as other:
            other.execute(words)
        other.close()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    addresses = [tmp_path / "e1", tmp_path / "w1"]
    for folder in addresses:
        folder.mkdir()
    for guest in ("g", "h"):
        (addresses[0] / guest).write_text("running")
    one = Made(tmp_path, "dry-run", (str(addresses[0]), str(addresses[1])))
    yield one
    one.state.close()


def test_a_database_that_refuses_a_beginning_holds_no_move_up(made: Made) -> None:
    """A move whose beginning cannot be journalled does not begin, keeps no other from beginning, and begins when
    the database answers again; so do those that wait behind it."""

    async def body() -> None:
        made.add("g")
        made.add("h")
        again = made.refuse("copying")
        with pytest.raises(StateError, match="disk is full"):
            made.moves.start()
        assert made.moves.under_way == [] and made.moves.moving == {"g", "h"}
        again()
        for _ in range(2):
            made.moves.start()
            await made.moves.finish()

    asyncio.run(body())
    assert made.stages() == [Stage.DONE, Stage.DONE]


def test_an_end_that_cannot_be_journalled_is_found_out_later(made: Made) -> None:
    """The guest has moved and the database refuses to know it: nothing else moves the guest meanwhile, and the journal
    says `done` when it answers again."""

    async def body() -> None:
        made.add("g")
        again = made.refuse("done")
        made.moves.start()
        await made.moves.finish()
        assert made.stages() == [Stage.COPYING] and made.moves.moving == {"g"}
        with pytest.raises(StateError, match="disk is full"):
            await made.moves.settle()
        assert made.moves.moving == {"g"}
        again()
        await made.moves.settle()

    asyncio.run(body())
    assert made.stages() == [Stage.DONE] and made.moves.moving == set()
    assert made.inventory.guests["g"].host == "w1"
    assert made.events == ["move-began", "not-settled", "move-done"]


def test_no_move_begins_in_a_cluster_that_is_being_changed(made: Made) -> None:
    """A move that has begun goes on, and is named to those who change the cluster; one that waits begins afterwards."""
    held: set[str] = set()
    made.inventory.held = lambda: held

    async def body() -> None:
        made.moves._at_once = 2
        made.add("g")
        made.moves.start()
        held.add("c")
        made.add("h")
        made.moves.start()
        assert made.moves.begun == {"g"} and made.moves.moving == {"g", "h"}
        await made.moves.finish()
        made.moves.start()
        assert made.moves.begun == set() and made.stages() == [Stage.PLANNED, Stage.DONE]
        held.clear()
        made.moves.start()
        await made.moves.finish()

    asyncio.run(body())
    assert made.stages() == [Stage.DONE, Stage.DONE]


def test_a_guest_whose_cluster_is_dropped_while_it_moves_holds_nothing_up(made: Made) -> None:
    """Another move to the same host is looked at all the same."""
    Path(made.inventory.hosts["w1"].address, ".seconds").write_text("1")

    async def body() -> None:
        made.moves._at_once = 2
        made.add("g")
        made.moves.start()
        made.inventory.guests.pop("g")
        made.add("h")
        made.moves.start()
        await made.moves.finish()

    asyncio.run(body())
    assert made.stages() == [Stage.DONE, Stage.DONE]


def test_a_domain_that_was_paused_stays_paused(tmp_path: Path) -> None:
    """A move that cannot begin changes nothing: libvirt's own driver for tests, the guest suspended at the source."""
    libvirt = pytest.importorskip("libvirt", reason="libvirt's binding is not installed")
    (tmp_path / "node.xml").write_text("<node></node>")
    guest = Guest("test", "c", 1, 1 << 30, "e1")
    here, there = (
        Host(name, name[0], 4, 8 << 30, "libvirt", address)
        for name, address in (("e1", "test:///default"), ("w1", f"test://{tmp_path}/node.xml"))
    )
    connection = libvirt.open(here.address)
    domain = connection.lookupByName("test")
    domain.suspend()
    with pytest.raises(MoveFailed, match="test does not run on e1"):
        mover("libvirt").move(guest, here, there, lambda _: None)
    assert domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED
    connection.close()


def test_a_qemu_guest_that_was_paused_stays_paused(tmp_path: Path) -> None:
    """The same of a QEMU process, which needs no system to run its firmware."""
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    here, there = (Host(name, name[0], 4, 8 << 30, "qmp", str(tmp_path / name)) for name in ("e1", "w1"))
    for host in (here, there):
        Path(host.address).mkdir()
    folder = QemuFolder.of(here)
    folder.start(QemuMachine("g", ("-M", "pc", "-accel", "tcg", "-m", "16", "-display", "none")))

    async def execute(*commands: str) -> dict[str, object]:
        async with _monitor(folder, "g") as monitor:
            return [await monitor.execute(command) for command in commands][-1]

    try:
        asyncio.run(execute("stop"))
        with pytest.raises(MoveFailed, match="g is paused at e1"):
            mover("qmp").move(Guest("g", "c", 1, 16 << 20, "e1"), here, there, lambda _: None)
        assert asyncio.run(execute("query-status"))["status"] == "paused"
    finally:
        folder.end("g")
        QemuFolder.of(there).end("g")


def test_a_daemon_that_is_away_loses_no_guest(tmp_path: Path) -> None:
    """If no daemon that knows what became of a guest answers, the guest is not given up: the move stays open, and that is
    said once for all looks."""
    pytest.importorskip("libvirt", reason="libvirt's binding is not installed")
    one = Made(
        tmp_path, "libvirt", (f"qemu:///system?socket={tmp_path}/a", f"qemu:///system?socket={tmp_path}/b")
    )

    async def body() -> None:
        one.add("g")
        one.moves.start()
        await one.moves.finish()
        for _ in range(3):
            await one.moves.settle()

    asyncio.run(body())
    assert one.stages() == [Stage.COPYING] and one.moves.moving == {"g"}
    assert one.inventory.guests["g"].host == "e1"
    assert one.events == ["move-began", "not-settled"]
    one.state.close()
