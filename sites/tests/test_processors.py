"""Processors that differ: what hosts say of their speed and instruction sets, and what follows for moves."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
import httpx
from managed import managing
from topolane_sites.files import Config
from topolane_sites.inventory import Inventory
from topolane_sites.model import Guest, GuestUse, Host, Site, Stage
from topolane_sites.moves import Moves
from topolane_sites.plans import PlannedMove
from topolane_sites.processor import instructions, misfit, of_this_machine
from topolane_sites.state import ManagerDatabase

E1 = {"site": "east", "cores": 4, "memory": 1 << 33}
JSON = {"content-type": "application/json"}
G1 = {"name": "g1", "cores": 2, "memory": 1 << 30}


def test_a_host_that_lies_is_refused_by_name(tmp_path: Path) -> None:
    """Of speed, load, use and features: nothing of such a report is taken, and the answer names host and value."""
    speeds = [0, -1, float("nan"), float("inf"), 1e9, 0.001, "fast", True, None, [1.0]]
    lies = [({"speed": speed}, f"speed must be a number from 0.01 to 100, not {speed!r}") for speed in speeds]
    lies += [
        ({"other_load": -1}, "other_load must be a number from 0 to "),
        ({"guests": [{**G1, "cpu": "all"}]}, "cpu must be a number from 0 to "),
        ({"guests": [{**G1, "sent": -1.0}]}, "sent must be a number from 0 to "),
        ({"features": "avx"}, "features must be a list of words, not 'avx'"),
    ]
    transport = httpx.HTTPTransport(uds=f"{tmp_path}/a.sock")
    with (
        managing(tmp_path, {"g1": "e1"}),
        httpx.Client(transport=transport, base_url="http://h", headers=JSON) as asked,
    ):
        for lie, said in lies:
            answer = asked.post("/hosts/e1/report", content=json.dumps(E1 | lie))
            assert answer.status_code == 422
            assert answer.json()["detail"].startswith(f"host e1: {said}")
        (found,) = (host for host in asked.get("/hosts").json() if host["name"] == "e1")
        assert (found["speed"], found["report"]) == (1.0, None)


class Known:
    """The inventory of e1, whose speed the file gives, and w1; it can be made again from its database."""

    def __init__(self, folder: Path) -> None:
        given = Host("e1", "east", 4, 1 << 33, speed=2.0, speed_given=True)
        sites = (Site("east", (given,)), Site("west", (Host("w1", "west", 4, 1 << 33),)))
        guests = (Guest("g1", "", 1, 1 << 30, "e1"),)
        self.config = Config(sites, (), guests, (), (), f"sqlite:///{folder}/s.db")
        self.again()

    def again(self) -> None:
        self.state = ManagerDatabase(self.config.state)
        self.inventory = Inventory(self.config, self.state)

    def report(self, host: str, may_add: bool = False, **fields: Any) -> list[str]:
        site = "east" if host[0] == "e" else "west"
        return self.inventory.host_report(host, {**E1, "site": site, **fields}, may_add=may_add)


@pytest.fixture
def known(tmp_path: Path) -> Known:
    return Known(tmp_path)


def test_the_speed_in_the_file_wins_and_a_measured_one_is_kept(known: Known) -> None:
    """A report without a speed changes nothing; after a restart the last ones are known."""
    for host in ("e1", "w1"):
        known.report(host, speed=1.25, features=["avx", "svm"])
        known.report(host)
    for _ in range(2):
        hosts = known.inventory.hosts
        assert (hosts["e1"].speed, hosts["w1"].speed) == (2.0, 1.25)
        assert hosts["e1"].features == hosts["w1"].features == ("avx",)
        known.inventory.write()
        known.state.close()
        known.again()


def test_a_host_that_reports_itself_may_change_its_speed_but_not_its_size(known: Known) -> None:
    """The token for reports is enough for what is measured."""
    assert known.report("w9", may_add=True, speed=1.5) == ["host w9 of west: 4 cores, by dry-run"]
    assert known.report("w9", speed=1.4) == []
    assert known.inventory.hosts["w9"].speed == 1.4
    with pytest.raises(PermissionError):
        known.report("w9", cores=5)


def test_what_others_and_guests_use_is_known_from_the_newest_report(known: Known) -> None:
    guest = known.inventory.guests["g1"]
    assert (known.inventory.other_load("e1"), known.inventory.use_of(guest)) == (0.0, None)
    row = {"name": "g1", "cores": 1, "memory": 1 << 30, "cpu": 0.75}
    known.report("e1", other_load=1.5, guests=[row])
    assert known.inventory.other_load("e1") == 1.5
    assert known.inventory.use_of(guest) == GuestUse(0.75, None, None)
    known.report("e1", guests=[{**row, "sent": 10.0, "received": 20.0}])
    assert known.inventory.use_of(guest) == GuestUse(0.75, 10.0, 20.0)


def test_names_of_qemu_libvirt_and_linux_are_one(tmp_path: Path) -> None:
    """What only a kernel uses, or a hypervisor emulates, is ignored; a machine has what all its processors have."""
    qemu, linux = ["sse3", "sse4.1", "sha-ni", "avx512-vbmi2", "lzcnt", "hypervisor"], tmp_path / "cpuinfo"
    linux.write_text(
        "flags\t: abm avx512_vbmi2 pni sha_ni sse4_1 svm avx\nflags\t: avx512_vbmi2 abm pni sha_ni sse4_1\n"
    )
    assert instructions(qemu) == ("abm", "avx512_vbmi2", "pni", "sha_ni", "sse4_1")
    assert of_this_machine(linux) == instructions(qemu)
    assert of_this_machine(tmp_path / "none") == ()


def test_a_move_to_a_host_that_lacks_a_feature_is_refused_by_name_and_not_tried(known: Known) -> None:
    """Also one that was planned before; where the guest or the host says nothing, nothing is refused."""
    guest = replace(known.inventory.guests["g1"], features=("avx", "avx512f"))
    host = replace(known.inventory.hosts["w1"], features=("avx",))
    assert misfit(guest, host) == "host w1 lacks avx512f, which guest g1 has"
    assert misfit(replace(guest, features=()), host) == misfit(guest, replace(host, features=())) == ""
    messages: list[tuple[str, str]] = []
    moves = Moves(known.state, known.inventory, 1, lambda kind, _, text: messages.append((kind, text)))
    assert moves.add(PlannedMove("g1", "e1", "w1", ("p",), "why"))
    known.inventory.guests["g1"], known.inventory.hosts["w1"] = guest, host
    asyncio.run(_started(moves))
    assert known.state.moves()[0][0].stage == Stage.ROLLED_BACK
    assert messages == [("move-rolled-back", "from e1 to w1: host w1 lacks avx512f, which guest g1 has")]


async def _started(moves: Moves) -> None:
    moves.start()
    await moves.finish()
