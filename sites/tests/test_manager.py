"""A live manager: nothing is lost when it dies, plans are carried out, and what goes wrong is said."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from managed import MAIN, Managed, managing
from sender import Rank
from topolane import InputError
from topolane.traffic import read_traffic
from topolane_sites.inventory import _of_tunnels
from waiting import DEADLINE, until, until_async

APART = {"g0": "e1", "g1": "w1", "g2": "e1", "g3": "w1"}
"""Four guests, two on each site; a site has room for all of them."""


async def inside(call, *arguments):
    """Runs a blocking call while the ranks go on."""
    return await asyncio.to_thread(call, *arguments)


def chatty(manager: Managed, count: int) -> list[Rank]:
    """Ranks, one in each guest, that wait for each other a hundred times a second: 20 s of it."""
    ranks = [Rank(manager.programs, rank, count, host=f"g{rank}") for rank in range(count)]
    for rank in ranks:
        rank.start()
        peers = [(peer, 0, 2000, 200_000, 1000) for peer in range(count) if peer != rank.hello.rank]
        rank.report(*peers, length=20.0, in_mpi=20.0)
    return ranks


def with_ranks(manager: Managed, body, count: int = 4) -> None:
    """Runs `body(ranks)` while a chatty program runs that is known to the manager."""

    async def main() -> None:
        ranks = chatty(manager, count)
        try:
            await until_async(lambda: not any(rank.unacknowledged for rank in ranks))
            await body(ranks)
        finally:
            for rank in ranks:
                await rank.stop()

    asyncio.run(main())


def test_a_manager_that_is_killed_under_64_ranks_counts_exactly(tmp_path: Path) -> None:
    """64 ranks report while the manager is killed and started again, and connections are cut: every message is counted
    once, in the matrix as CSV too, and the program is found ended."""

    async def body(manager: Managed) -> None:
        ranks = [Rank(manager.programs, rank, 64, host=f"g{rank % 4}") for rank in range(64)]
        for rank in ranks:
            rank.start()
        for number in range(24):
            for rank in ranks:
                rank.report(
                    ((rank.hello.rank + 1) % 64, 0, 1, number, 1), ((rank.hello.rank + 2) % 64, 1, 2, 10, 0)
                )
            await asyncio.sleep(0.1)
            if number in (7, 15):
                await inside(manager.kill)
                await inside(manager.start)
            for rank in ranks[number::7]:
                rank.cut()
        for rank in ranks:
            rank.bye()
        await until_async(lambda: not any(rank.unacknowledged for rank in ranks))
        await inside(check, manager)
        for rank in ranks:
            await rank.stop()

    def check(manager: Managed) -> None:
        (program,) = manager.client.get("/programs", ended=True)
        assert program["ended"] is not None and program["reported"] == 64
        (tmp_path / "matrix.csv").write_text(manager.client.text("/programs/program/matrix"))
        traffic = read_traffic(tmp_path / "matrix.csv")
        assert traffic.ranks == 64
        assert traffic.messages == 64 * 24 * 3
        assert traffic.bytes == 64 * (sum(range(24)) + 24 * 10)
        manager.kill()
        manager.start()
        (again,) = manager.client.get("/programs", ended=True)
        assert (again["ended"], again["ranks"]) == (program["ended"], 64)
        assert manager.client.text("/programs/program/matrix") == (tmp_path / "matrix.csv").read_text()

    with managing(tmp_path, APART) as manager:
        asyncio.run(body(manager))


def test_room_for_a_cluster_that_arrives_is_planned_and_made(tmp_path: Path) -> None:
    """Three guests fit next to the program on either site, and four arrive: `plan --room-for` proposes a site for them after
    one move, and applied it is there, with nothing left to move; on the other site it would take two. Five fit nowhere:
    exit code 1. Options that do not go together and values that are none are refused by name, with exit code 2."""

    def plan(*options: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", MAIN, "sites", "plan", "--manager", f"unix:{tmp_path}/a.sock"]
        result = subprocess.run([*command, *options], capture_output=True, text=True, timeout=DEADLINE)
        assert result.returncode == code, (result.stdout, result.stderr)
        return result

    async def body(ranks: list[Rank]) -> None:
        wanted = ("--cores", "2", "--memory", "1 GiB")
        said = (await inside(plan, "--room-for", "4", *wanted)).stdout
        assert "After 1 move there is room for 4 guests on one site: " in said
        made = json.loads((await inside(plan, "--room-for", "4", *wanted, "--json")).stdout)
        (move,) = made["moves"]
        assert {host[0] for host in made["room"]} == {move["source"][0]}
        assert await inside(manager.stages) == {}
        assert await inside(manager.client.post, f"/plans/{made['id']}/apply") == {"moves": 1}
        await until_async(lambda: manager.stages() == {move["guest"]: "done"})
        assert manager.copies(move["guest"]) == [move["target"]]
        said = (await inside(plan, "--room-for", "4", *wanted)).stdout
        assert "There is room for 4 guests on one site: " in said
        assert (
            "no moves were found" in (await inside(partial(plan, code=1), "--room-for", "5", *wanted)).stdout
        )
        full = "east" if move["target"][0] == "e" else "west"
        said = (await inside(plan, "--room-for", "4", *wanted, "--site", full)).stdout
        assert "After 2 moves there is room for 4 guests on one site: " in said
        for options, words in (
            (("--cores", "2"), "--cores needs --room-for"),
            (("--room-for", "4"), "--room-for needs the memory of each guest"),
            (("--room-for", "4", "--memory", "8 pints"), "--memory '8 pints' is neither a number of bytes"),
            (("--room-for", "4", "--memory", "1 GiB", "--site", "north"), "'north' is no site"),
        ):
            assert words in (await inside(partial(plan, code=2), *options)).stderr

    with managing(tmp_path, {"g0": "e1", "g1": "w1"}, act="false") as manager:
        with_ranks(manager, body, 2)


def test_a_plan_is_proposed_applied_and_reported_to_the_ranks(tmp_path: Path) -> None:
    """A chatty program over two sites: the plan gathers it on one; nothing moves until it is applied; then two guests
    move, all ranks hear of their new sites with the next epoch, and the same plan has nothing left to do."""

    async def body(ranks: list[Rank]) -> None:
        await until_async(lambda: all(rank.epochs == [1] for rank in ranks))
        assert ranks[0].sites == [0, 1, 0, 1]
        plan = await inside(manager.client.post, "/plan")
        assert {move["source"] for move in plan["moves"]} in ({"e1"}, {"w1"})
        assert len(plan["moves"]) == 2
        (judged,) = plan["judged"]
        assert judged["loss_now"] > 0.5 and judged["loss_then"] == 0 and judged["gain"] > judged["cost"]
        assert await inside(manager.stages) == {}
        assert len(await inside(manager.events, "proposed")) == 1
        assert await inside(manager.client.post, f"/plans/{plan['id']}/apply") == {"moves": 2}
        await until_async(lambda: all(rank.epochs[-1] == 2 + (len(rank.epochs) > 2) for rank in ranks))
        await until_async(
            lambda: len(set(ranks[0].sites)) == 1 and all(rank.sites == ranks[0].sites for rank in ranks)
        )
        for move in plan["moves"]:
            assert manager.copies(move["guest"]) == [move["target"]]
        assert set((await inside(manager.stages)).values()) == {"done"}
        assert await inside(manager.client.post, f"/plans/{plan['id']}/apply") == {"moves": 0}
        assert (await inside(manager.client.post, "/plan"))["moves"] == []

    with managing(tmp_path, APART) as manager:
        # The program has run long already, and so is expected to run on.
        with_ranks(manager, lambda ranks: declared(manager, ranks, body))


async def declared(manager: Managed, ranks: list[Rank], body) -> None:
    """Goes on with a program that will run for a day."""
    await inside(manager.client.put, "/programs/program/remaining", {"seconds": 86400})
    await body(ranks)


def test_a_manager_that_may_act_does(tmp_path: Path) -> None:
    """With `act = true` the program is gathered without an order of the operator, and then left where it is."""

    async def body(ranks: list[Rank]) -> None:
        await until_async(lambda: ranks[0].sites and len(set(ranks[0].sites)) == 1)
        stages = await inside(manager.stages)
        assert sorted(stages.values()) == ["done", "done"]
        await asyncio.sleep(1)
        assert await inside(manager.stages) == stages
        assert len(await inside(manager.client.get, "/moves")) == 2

    with managing(tmp_path, APART, act="true") as manager:
        with_ranks(manager, lambda ranks: declared(manager, ranks, body))


def test_a_move_that_fails_is_taken_back_and_said(tmp_path: Path) -> None:
    """A migration that fails half way: its guest runs where it ran, once; the journal and the events say why, each in a
    line on standard error too, and the ranks get no new sites by it."""
    for host in ("e1", "w1", "e2", "w2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / ".fail").write_text("the wire\nbroke")

    async def body(ranks: list[Rank]) -> None:
        plan = await inside(manager.client.post, "/plan")
        await inside(manager.client.post, f"/plans/{plan['id']}/apply")
        await until_async(lambda: list(manager.stages().values()) == ["rolled-back"] * 2)
        assert all(manager.copies(guest) == [host] for guest, host in APART.items())
        # Events are stored about once a second.
        await until_async(lambda: len(manager.events("move-rolled-back")) == 2)
        assert all("the wire\nbroke" in event["text"] for event in manager.events("move-rolled-back"))
        assert [rank.epochs for rank in ranks] == [[1]] * 4
        assert (await inside(manager.client.post, "/plan"))["moves"] == []  # a rest before it is tried again
        said = manager.said.read_text().splitlines()
        for kind in ("move-began", "move-rolled-back"):
            lines = [line for line in said if kind in line]
            assert len(lines) == 2 and all(" g" in line for line in lines)

    with managing(tmp_path, APART) as manager:
        with_ranks(manager, lambda ranks: declared(manager, ranks, body))


def test_a_guest_that_is_lost_is_said_and_left_alone(tmp_path: Path) -> None:
    """A guest that runs nowhere after its move: the journal says lost, and its program is planned no more."""
    for host in ("e1", "w1", "e2", "w2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / ".lost").write_text("the host burnt")

    async def body(ranks: list[Rank]) -> None:
        plan = await inside(manager.client.post, "/plan")
        await inside(manager.client.post, f"/plans/{plan['id']}/apply")
        await until_async(lambda: sorted(manager.stages().values()) == ["lost"] * 2)
        await until_async(lambda: manager.events("move-lost"))
        assert "the host burnt" in manager.events("move-lost")[0]["text"]
        explained = await inside(manager.client.get, "/explain/program")
        assert "on no host that is known" in explained["why"]

    with managing(tmp_path, APART) as manager:
        with_ranks(manager, lambda ranks: declared(manager, ranks, body))


def test_a_manager_killed_in_the_middle_of_a_move_settles_it(tmp_path: Path) -> None:
    """Killed while a guest is copied: the next manager finds it in its journal and leaves exactly one copy."""
    for host in ("e1", "w1", "e2", "w2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / ".seconds").write_text("5")

    async def body(ranks: list[Rank]) -> None:
        plan = await inside(manager.client.post, "/plan")
        guest = plan["moves"][0]["guest"]
        await inside(manager.client.post, f"/plans/{plan['id']}/apply")
        await until_async(lambda: len(manager.copies(guest)) == 2)
        await inside(manager.kill)
        assert len(manager.copies(guest)) == 2
        await inside(manager.start)
        await until_async(lambda: "copying" not in manager.stages().values())
        assert set(manager.stages().values()) == {"rolled-back"}  # the other one had not begun
        assert all(manager.copies(guest) == [host] for guest, host in APART.items())
        await until_async(
            lambda: any("half done" in event["text"] for event in manager.events("move-rolled-back"))
        )

    with managing(tmp_path, APART) as manager:
        with_ranks(manager, lambda ranks: declared(manager, ranks, body))


def test_a_driver_that_takes_long_to_decide_holds_no_look_up(tmp_path: Path) -> None:
    """Killed while a guest is copied, and started again where the driver cannot say yet how that has ended: programs
    that begin meanwhile are watched and get their sites, the move stays open; and it is settled when it is decided."""
    for host in ("e1", "w1", "e2", "w2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / ".seconds").write_text("5")

    async def body(ranks: list[Rank]) -> None:
        plan = await inside(manager.client.post, "/plan")
        move = plan["moves"][0]
        undecided = tmp_path / move["target"] / ".undecided"
        await inside(manager.client.post, f"/plans/{plan['id']}/apply")
        await until_async(lambda: len(manager.copies(move["guest"])) == 2)
        await inside(manager.kill)
        undecided.touch()
        late = Rank(manager.programs, 0, 1, program="late", host="g0")
        try:
            await inside(manager.start)
            late.start()
            await until_async(lambda: late.epochs == [1])
            assert (await inside(manager.stages))[move["guest"]] == "copying"
        finally:
            undecided.unlink()
            await late.stop()
        await until_async(lambda: "copying" not in manager.stages().values())
        assert manager.copies(move["guest"]) == [move["source"]]

    with managing(tmp_path, APART) as manager:
        with_ranks(manager, lambda ranks: declared(manager, ranks, body))


def test_pause_dry_run_and_explain(tmp_path: Path) -> None:
    """While paused nothing is begun, also after a restart; a dry manager refuses to apply; explain says why."""

    async def body(ranks: list[Rank]) -> None:
        client = manager.client
        await inside(client.post, "/pause")
        await inside(manager.kill)
        await inside(manager.start, "--dry-run")
        assert (await inside(client.get, "/status"))["paused"] is True
        assert (await inside(client.get, "/explain/program"))["why"] == "planning is paused"
        await inside(client.post, "/resume")
        plan = await inside(client.post, "/plan")
        with pytest.raises(InputError, match="runs dry"):
            await inside(client.post, f"/plans/{plan['id']}/apply")
        for path in ("/programs/none", "/explain/none", "/programs/none/matrix"):
            with pytest.raises(InputError, match="no program is called none"):
                await inside(client.get, path)
        with pytest.raises(InputError, match="no plan is called none"):
            await inside(client.post, "/plans/none/apply")

    with managing(tmp_path, APART, act="true") as manager:
        with_ranks(manager, body)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([(True, 1)], ["had ended and was started again"]),
        ([(False, 0), (True, 1)], ["has ended; it is started again", "runs again"]),
        ([(False, 1), (True, 1)], ["has ended; it is started again", "runs again"]),
        ([(False, 0), (False, 1), (True, 1)], ["has ended; it is started again", "runs again"]),
        ([(True, 0), (True, 1), (True, 2)], ["had ended and was started again"] * 2),
    ],
)
def test_the_end_and_the_start_of_a_tunnel_are_said_once(
    seen: list[tuple[bool, int]], said: list[str]
) -> None:
    """Whatever reports come in between: each says whether the tunnel runs, and how often it was started again."""
    reports = [
        {"tunnels": [{"cluster": "c1", "runs": runs, "restarts": count}]}
        for runs, count in [(True, 0), *seen]
    ]
    changes = [text for before, now in itertools.pairwise(reports) for text in _of_tunnels(before, now)]
    assert changes == [f"the tunnel of cluster c1 {text}" for text in said]


def test_a_host_a_site_and_a_program_that_disappear_are_said(tmp_path: Path) -> None:
    """Hosts of a site report and fall silent: each is said, and that the site is gone; nothing is planned for what runs
    there. A program whose ranks all vanish is taken for ended."""
    report = {"site": "west", "cores": 4, "memory": 8 << 30}

    async def body(ranks: list[Rank]) -> None:
        for host in ("w1", "w2"):
            await inside(manager.client.post, f"/hosts/{host}/report", report)
        await until_async(lambda: len(manager.events("site-silent")) == 1)
        assert [event["subject"] for event in manager.events("host-silent")] == ["w1", "w2"]
        assert "host w1 of guest" in (await inside(manager.client.get, "/explain/program"))["why"]
        await inside(manager.client.post, "/hosts/w1/report", report)
        await until_async(lambda: any("is back" in event["text"] for event in manager.events("host")))
        for rank in ranks:
            await rank.stop()
        await until_async(lambda: len(manager.events("program-gone")) == 1)
        assert len(manager.events("rank-gone")) == 4
        assert manager.client.get("/programs") == []

    with managing(tmp_path, APART, silence=1) as manager:
        with_ranks(manager, body)


def test_hosts_guests_and_clusters_that_are_reported_are_kept(tmp_path: Path) -> None:
    """A host that no file names, its guests, and a cluster: known after a kill; what cannot be used is refused."""
    guests = [
        {"name": "v1", "cores": 1, "memory": 1 << 30, "dirty": 1e6},
        {"name": "v2", "cores": 1, "memory": 1 << 30},
    ]
    with managing(tmp_path, {}) as manager:
        client = manager.client
        client.put("/clusters/c1", {"guests": guests, "sites": ["east"]})
        host = {"site": "east", "cores": 8, "memory": 1 << 34, "load": 0.5}
        client.post("/hosts/e9/report", {**host, "guests": [{**guests[0], "state": "running"}]})
        client.post("/guests/v1/report", {"programs": ["lu"]})
        manager.kill()
        manager.start()
        known = {guest["name"]: guest for guest in client.get("/guests")}
        assert (known["v1"]["host"], known["v1"]["site"], known["v1"]["cluster"]) == ("e9", "east", "c1")
        assert (known["v2"]["host"], known["v1"]["dirty"]) == (None, 1e6)
        assert client.get("/clusters/c1")["sites"] == ["east"]
        for path, body, said in (
            ("/hosts/e9/report", {**host, "site": "north"}, "'north' is no site"),
            ("/hosts/e9/report", {**host, "cores": 0}, "greater than 0"),
            ("/guests/none/report", {}, "no guest is called none"),
        ):
            with pytest.raises(InputError, match=said):
                client.post(path, body)
        with pytest.raises(InputError, match="cores"):
            client.put("/clusters/c2", {"guests": [{"name": "x", "cores": "many", "memory": 1}]})
        client.delete("/clusters/c1")
        assert client.get("/guests") == [] and client.get("/clusters") == {}
        until(lambda: "topolane_sites_programs 0.0" in client.text("/metrics"))


def test_what_the_database_has_no_room_for_holds_nothing_up(tmp_path: Path) -> None:
    """A rank says that it gave up 2^63 frames: it is cut off, and others are acknowledged as before."""

    async def body(manager: Managed) -> None:
        liar = Rank(manager.programs, 0, 2, program="liar")
        liar.start()
        liar.bye(2**63)
        await inside(until, lambda: manager.events("garbled"))
        rank = Rank(manager.programs, 0, 1)
        rank.start()
        rank.report((0, 0, 1, 1, 1))
        await until_async(lambda: not rank.unacknowledged)
        for one in (liar, rank):
            await one.stop()

    with managing(tmp_path, {}) as manager:
        asyncio.run(body(manager))
