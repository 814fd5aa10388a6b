"""`sites up` and `down` of a cluster that runs: guests come and go, and a killed command can be given again."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_image import missing
from managed import MAIN, Managed, guest_daemon, managing
from places import Place, placed
from topolane_sites.client import Client
from topolane_sites.holding import holding
from topolane_sites.plans import PlannedMove, SitesPlan
from topolane_sites.qemu import QemuFolder
from topolane_sites.state import ManagerDatabase
from waiting import DEADLINE, until

pytest.importorskip("qemu.qmp", reason="building clusters needs the packages of topolane-sites")
NO_GUESTS = missing("cc", "strip", "ip", "bridge") or (os.geteuid() and "network namespaces need root")
BOTH = {"g1": "a", "g2": "b"}
THREE = {"g1": "a", "g2": "b", "g3": ""}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    if NO_GUESTS:
        pytest.skip(f"a cluster needs QEMU and a kernel: {NO_GUESTS}")
    with placed(tmp_path) as made:
        yield made


def test_a_guest_that_left_the_file_is_refused_and_ended_where_that_is_asked(place: Place) -> None:
    """Also what else a file may not change of a guest that runs; a refused file changes nothing."""
    place.write(THREE)
    assert place.up().returncode == 0
    before = place.pids()
    place.write(BOTH)
    done = place.up()
    assert done.returncode == 2 and done.stdout == "", done
    assert (
        f"{place.file} no longer names g3 of c1: to end it, run 'sites down {place.file} --guests g3'"
        in done.stderr
    )
    assert "or 'sites up --remove'" in done.stderr
    place.file.write_text(place.file.read_text().replace("10.42.0.1", "10.42.0.9"))
    done = place.up("--remove")
    assert done.returncode == 2 and "address of g1 is 10.42.0.1 while it runs, not 10.42.0.9" in done.stderr
    assert sorted(place.processes()) == ["g1", "g2", "g3"]
    place.write(BOTH)
    done = place.up("--remove")
    assert done.returncode == 0, done.stderr
    assert f"\n{place.file} no longer names g3: it is ended\ng3 is ended on " in done.stdout
    assert place.processes() == {"g1": ["a"], "g2": ["b"]} and place.pids() == before
    assert place.hosts() == BOTH
    for names, said in (
        ("g9", "c1 has no such guest; it has g1, g2"),
        ("g1,g2", "no guest of c1 would be left"),
    ):
        done = place.down("--guests", names)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    changes = [event["text"] for event in place.managed.client.get("/events") if event["kind"] == "cluster"]
    assert changes == ["g3 taken away", "g1, g2, g3 added"]


DIES = """
import os, signal, sys
from topolane_sites import builders, changes, holding, overlay
holding.SECONDS = 1.0
def dies_after(module, name):
    does = getattr(module, name)
    def die(*given):
        does(*given)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(module, name, die)
dies_after(*{
    "known": (changes._Known, "put"),
    "network": (overlay, "up"),
    "started": (builders.Qemu, "start"),
    "ended": (builders, "_end"),
}[sys.argv.pop(1)])
from topolane.cli import main
main()
"""


def _killed(place: Place, step: str, *words: str) -> None:
    """A command that is killed (-9) after a step."""
    command = [sys.executable, "-c", DIES, step, "sites", words[0], str(place.file), "--config"]
    command += [str(place.managed.file), *words[1:], "--manager", f"unix:{place.folder}/a.sock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_command_killed_at_any_step_is_completed_by_the_next(place: Place) -> None:
    """Growth is killed when the manager knows the new guest, when the network is there, when the guest runs; shrinking when
    it has ended. What ran before never stops, and no guest is started twice."""
    assert place.up().returncode == 0
    before = place.pids()
    place.write(THREE)
    for step in ("known", "network", "started"):
        _killed(place, step, "up")
    running = place.processes()
    assert sorted(running) == ["g1", "g2", "g3"]
    done = place.up()
    assert done.returncode == 0 and "g3 is on " in done.stdout and " already" in done.stdout, done
    assert place.processes() == running and place.pids() == before
    assert place.hosts() == {guest: host for guest, (host,) in running.items()}
    _killed(place, "ended", "down", "--guests", "g3")
    assert sorted(place.processes()) == ["g1", "g2"] and "g3" in place.hosts()
    done = place.down("--guests", "g3")
    assert done.returncode == 0, done.stderr
    assert place.hosts() == BOTH and place.pids() == before


SPOILED = """
import os, sys
from topolane_sites import builders
folders = sys.argv.pop(1).split(",")
start = builders.Qemu.start
def start_and_spoil(*given):
    start(*given)
    for folder in folders:
        os.chmod(folder, 0o777)
builders.Qemu.start = start_and_spoil
from topolane.cli import main
main()
"""


def test_a_guest_that_could_not_be_ended_again_stays_known(place: Place) -> None:
    """A growth by two guests: after the first has started, the folders of both hosts are open to other users, so the second
    is not started and the first is not ended. The command names it, the manager keeps it, and once the folders are
    closed the next command completes the cluster; what ran before and the guest itself run on."""
    assert place.up().returncode == 0
    before = place.pids()
    place.write(THREE | {"g4": ""})
    folders = [place.folder / f"qemu-{host}" for host in "ab"]
    command = [sys.executable, "-c", SPOILED, ",".join(map(str, folders)), "sites", "up", str(place.file)]
    command += ["--config", str(place.managed.file), "--manager", f"unix:{place.folder}/a.sock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    for folder in folders:
        folder.chmod(0o700)
    (host,) = place.processes()["g3"]
    assert place.hosts().get("g3") == host, "the manager has forgotten a guest that runs"
    assert "c1 cannot be built: " in done.stderr and f"but not g3 on {host} " in done.stderr
    third = QemuFolder(place.folder / f"qemu-{host}").pid("g3")
    done = place.up()
    assert done.returncode == 0 and f"g3 is on {host} already" in done.stdout, done
    assert sorted(place.processes()) == sorted(place.hosts()) == ["g1", "g2", "g3", "g4"]
    assert place.pids() == before and QemuFolder(place.folder / f"qemu-{host}").pid("g3") == third


def test_two_commands_at_once_change_a_cluster_one_after_the_other(place: Place) -> None:
    place.write(THREE)
    words = ["up", str(place.file), "--config", str(place.managed.file)]
    words += ["--manager", f"unix:{place.folder}/a.sock"]
    command = [sys.executable, "-c", "from topolane.cli import main; main()", "sites", *words]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate(timeout=DEADLINE)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0], said
    assert {guest: len(hosts) for guest, hosts in place.processes().items()} == {"g1": 1, "g2": 1, "g3": 1}
    assert sum(text.count("is on a already") + text.count("is on b already") for text in said) == 3


@pytest.mark.parametrize("dies", [False, True])
def test_a_guest_whose_ranks_are_not_watched_is_not_taken_without_force(place: Place, *, dies: bool) -> None:
    """mpiexec runs two ranks that are not watched, next to the guest's daemon (in a process namespace, as in a guest): `down`
    refuses to take the guest, and takes it when they have ended, or the guest and its daemon have. A guest
    without a daemon is taken, and `down` says that nothing but watched programs was looked for."""
    if shutil.which("mpiexec.mpich") is None:
        pytest.skip("no MPICH is installed")
    place.write(THREE | {"g4": ""})
    assert place.up().returncode == 0
    ending = place.folder / "ending"
    script = (
        f"mpiexec.mpich -n 2 sh -c 'while [ ! -e {ending} ]; do sleep 0.1; done' </dev/null & "
        f"exec {sys.executable} -c '{MAIN}' sites guest --name g3 --every 0.5 --manager unix:{place.folder}/a.sock"
    )
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
    daemon = subprocess.Popen([*guest_daemon(place.folder / "windows"), *own], stderr=subprocess.DEVNULL)

    def ranks() -> object:
        (report,) = (one["report"] for one in place.managed.client.get("/guests") if one["name"] == "g3")
        return report and len(report["ranks"])

    try:
        until(lambda: (ranks() or 0) >= 2)
        done = place.down("--guests", "g3")
        assert done.returncode == 2 and "g3" in place.processes(), done
        assert re.search(r"g3 still runs \d+ ranks of MPI \(s.*as its daemon reported last", done.stderr), (
            done
        )
        if dies:
            (host,) = place.processes()["g3"]
            address = f"{place.folder}/qemu-{host}"
            words = f"host --name {host} --site {host} --driver qmp --address {address} --every 0.5".split()
            words += ["--manager", f"unix:{place.folder}/a.sock"]
            watch = subprocess.Popen([sys.executable, "-c", MAIN, "sites", *words], stderr=subprocess.DEVNULL)
            try:
                until(
                    lambda: any(
                        one["name"] == host and one["report"] for one in place.managed.client.get("/hosts")
                    )
                )
                os.kill(QemuFolder(Path(address)).pid("g3") or os.getpid(), signal.SIGKILL)
                until(lambda: place.hosts()["g3"] is None)
            finally:
                watch.kill()
                watch.wait()
            # Its daemon still reports, as that of a guest that was moved by hand to a host that is not watched.
            assert ranks() and place.down("--guests", "g3").returncode == 2
            daemon.kill()
            until(lambda: place.down("--guests", "g3").returncode == 0)
            assert "g3" not in place.hosts()
            return
        ending.touch()
        until(lambda: ranks() == 0)
        done = place.down("--guests", "g3")
        assert done.returncode == 0 and "no daemon" not in done.stdout, done
    finally:
        daemon.kill()
        daemon.wait()
    done = place.down("--guests", "g4")
    assert done.returncode == 0 and sorted(place.processes()) == ["g1", "g2"], done
    assert "g4 has no daemon that reports its ranks: only programs that are watched" in done.stdout


def _copied_at(place: Place, host: str, rate: int) -> None:
    """Limits the copying of g1 from this host to `rate` bytes a second."""
    from qemu.qmp import QMPClient

    async def set_rate() -> None:
        client = QMPClient()
        await client.connect(str(QemuFolder(place.folder / f"qemu-{host}").file("g1", "watch")))
        await client.execute("migrate-set-parameters", {"max-bandwidth": rate})
        await client.disconnect()

    asyncio.run(set_rate())


def _ticks(place: Place) -> list[int]:
    """What g1 has counted, first on host a, then on b."""
    consoles = [place.folder / f"qemu-{host}" / "g1.console" for host in "ab"]
    texts = [one.read_text(errors="replace") if one.exists() else "" for one in consoles]
    return [int(number) for text in texts for number in re.findall(r"tick (\d+)\r?\n", text)]


@pytest.fixture
def moving(place: Place) -> Place:
    """g1 is being moved from a to b by the manager, so slowly that it does not end by itself."""
    assert place.up().returncode == 0
    until(lambda: len(_ticks(place)) > 3)
    place.managed.stop()
    state = ManagerDatabase(f"sqlite:///{place.folder}/sites.db")
    move = PlannedMove("g1", "a", "b", (), "by hand")
    state.put("plan", "there", SitesPlan("there", time.time(), "stay", (), (move,), 0.0, {}).json())
    state.close()
    place.managed.start()
    _copied_at(place, "a", 64 << 10)
    assert place.managed.client.post("/plans/there/apply")["moves"] == 1
    until(lambda: place.processes().get("g1") == ["a", "b"])
    return place


def _up(place: Place) -> subprocess.Popen[str]:
    """`sites up` with a third guest, which has begun to wait for the move."""
    place.write(THREE)
    command = [sys.executable, "-c", MAIN, "sites", "up", str(place.file)]
    command += ["--config", str(place.managed.file), "--manager", f"unix:{place.folder}/a.sock"]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    assert made.stdout is not None
    assert made.stdout.readline() == "waiting for the move of g1\n"
    return made


def _one_of_each(place: Place, g3: str) -> None:
    """g1 is on b and counts on without a gap, the guests have one process each, and the manager knows them all."""
    there = {"g1": "b", "g2": "b", "g3": g3}
    assert place.processes() == {guest: [host] for guest, host in there.items()}
    assert place.hosts() == there
    before = len(_ticks(place))
    until(lambda: len(_ticks(place)) > before + 3)
    counted = _ticks(place)
    assert counted == list(range(1, len(counted) + 1))


def test_a_cluster_grows_while_a_guest_of_it_moves(moving: Place) -> None:
    """`up` waits for the move of g1 and then builds g3 on the host that g1 has left, since the other is full. Of each guest
    there is one process in the end, where the manager knows it, and g1 counts on without a gap."""
    up = _up(moving)
    time.sleep(2)
    assert up.poll() is None and "g3" not in moving.processes()
    _copied_at(moving, "a", 1 << 30)
    said = up.communicate(timeout=DEADLINE)
    assert up.returncode == 0 and "g1 is on b already" in said[0] and "g3 is on a" in said[0], said
    assert moving.managed.stages() == {"g1": "done"}
    _one_of_each(moving, "a")


def test_a_manager_killed_while_a_cluster_waits_to_grow_loses_no_guest(moving: Place) -> None:
    """The manager is killed (-9) in the move that `up` waits for: `up` fails in one sentence and has built nothing. The
    manager started again undoes the move, and `up` given again builds g3 while g1 stays."""
    up = _up(moving)
    moving.managed.kill()
    _, errors = up.communicate(timeout=DEADLINE)
    assert up.returncode == 2 and errors.count("\n") == 1 and "no answer" in errors, errors
    assert "g3" not in moving.processes()
    moving.managed.start()
    until(lambda: moving.processes().get("g1") == ["a"])
    done = moving.up()
    assert done.returncode == 0, done.stderr
    assert moving.processes() == {guest: [host] for guest, host in moving.hosts().items()}
    assert moving.hosts().keys() == set(THREE) and moving.hosts()["g1"] == "a"
    before = len(_ticks(moving))
    until(lambda: len(_ticks(moving)) > before + 3)
    counted = _ticks(moving)
    assert counted == list(range(1, len(counted) + 1))


GUESTS = {"g1": "e1", "g2": "e2"}
CLUSTER = {
    "guests": [{"name": name, "cores": 2, "memory": 1 << 30, "host": host} for name, host in GUESTS.items()]
}


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Managed]:
    with managing(tmp_path, GUESTS, act="true", policy='"predicted-loss"') as made:
        made.client.put("/clusters/c1", CLUSTER)
        yield made


def _hold(client: Client, owner: str = "me", seconds: float = 60.0) -> dict[str, object]:
    return client.post("/clusters/c1/hold", {"owner": owner, "seconds": seconds})


def test_a_held_cluster_is_changed_by_its_holder_only_and_a_hold_ends_by_itself(manager: Managed) -> None:
    """A manager that is killed and started again knows the hold."""
    client = manager.client
    assert _hold(client) == {"holder": "me", "moving": []}
    assert _hold(client, "other")["holder"] == "me"
    for change in (
        lambda: client.put("/clusters/c1", CLUSTER),
        lambda: client.delete("/clusters/c1?owner=other"),
    ):
        with pytest.raises(ValueError, match=r"c1 is being changed by another command \(me\)"):
            change()
    manager.kill()
    manager.start()
    assert _hold(client, "other")["holder"] == "me"
    client.put("/clusters/c1?owner=me", CLUSTER)
    assert _hold(client, "me", 0.3)["holder"] == "me"
    until(lambda: _hold(client, "other")["holder"] == "other")
    said: list[str] = []
    client.delete("/clusters/c1/hold?owner=other")
    with holding(client, "c1", said.append) as owner:
        assert _hold(client, "other")["holder"] == owner
    assert _hold(client, "other")["holder"] == "other" and said == []
