"""An MPI program on servers is watched by a site manager, and the real Nova places servers by what was measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud_process import HOSTS, CloudProcess
from placements import COMPACT, leaves, ours, tree, write

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from managed import MAIN, Managed, managing
from waiting import DEADLINE, until

HERE = Path(__file__).parent
TREE = tree([HOSTS[:4], HOSTS[4:8]], leaves_in_pod=1)
SERVERS = ("ant", "bee", "cat", "dog")
"""The hosts of ranks 0 to 3. The first two exchange megabytes, and so do the last two."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, as compiled."""
    missing = [name for name in ("mpicc.mpich", "mpiexec.mpich", "unshare") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: on Debian, apt-get install mpich libmpich-dev util-linux")
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode:
        pytest.skip("this user may not make namespaces")
    made = tmp_path_factory.mktemp("program") / "pairs"
    subprocess.run(["mpicc.mpich", "-O1", "-o", made, HERE / "measured_program.c"], check=True)
    return made


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Managed]:
    """A manager that knows nothing of Nova."""
    with managing(tmp_path, {}) as running:
        yield running


def started(hosts: tuple[str, ...], program: Path, ending: Path, *options: str) -> subprocess.Popen[str]:
    """The program under `topolane mpi run`, each rank in a namespace whose host name is a server's. It sends, and then
    runs until `ending` is there."""
    ranks: list[str] = []
    for host in hosts:
        ranks += [*([":"] if ranks else []), "-n", "1", "unshare", "--uts", "sh", "-c"]
        ranks += ['hostname "$0"; exec "$@"', host, str(program), "5", str(ending)]
    command = [
        sys.executable,
        "-c",
        MAIN,
        "mpi",
        "run",
        "--seconds",
        "0.2",
        *options,
        "--",
        "mpiexec.mpich",
        *ranks,
    ]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)


def ended(running: subprocess.Popen[str], ending: Path) -> None:
    """Lets it end."""
    ending.touch()
    _, errors = running.communicate(timeout=DEADLINE)
    assert running.returncode == 0, errors


def everything_arrived(manager: Managed) -> bool:
    """Whether the manager has the bytes that every rank sent to its partner."""
    for one in manager.client.get("/traffic"):
        sent = manager.client.get(f"/traffic/{one['id']}")["sent"]
        if sum(size >= 5 << 20 for _, _, size in sent) == len(SERVERS):
            return True
    return False


def group_of_three(cloud: CloudProcess, name: str) -> str:
    """A group whose servers ant and bee are on the first leaf and cat on the second. Both have free hosts."""
    group = cloud.group(name)
    for server, host in zip(SERVERS, (HOSTS[0], HOSTS[1], HOSTS[4])):
        cloud.boot(1, group, hints=COMPACT, host=host, name=server)
    return group


def leaf_of_the_fourth(cloud: CloudProcess, group: str, name: str) -> str:
    """The leaf that Nova gives one more server of the group."""
    servers = cloud.boot(1, group, hints=COMPACT, name=name)
    (leaf,) = leaves(TREE, servers.values())
    cloud.delete(list(servers))
    return leaf


def test_a_new_server_is_placed_by_what_a_manager_measured(
    cloud: CloudProcess, manager: Managed, program: Path, tmp_path: Path
) -> None:
    """Two of three servers are on the first leaf. As if all talked alike, the fourth belongs there. The program has
    shown that the fourth talks to cat, so it belongs on the second: under its old name, and as the successor of a
    server that is gone. A server of another group is placed as before. A live migration goes there too."""
    write(tmp_path / "topology.conf", TREE)
    file = str(tmp_path / "topology.conf")
    cloud.schedule_by(ours(machine_file=file))
    group = group_of_three(cloud, "watched")
    assert leaf_of_the_fourth(cloud, group, "dog") == "leaf0"

    ending = tmp_path / "ending"
    running = started(SERVERS, program, ending, "--manager", f"unix:{manager.programs}", "--name", "pairs")
    until(lambda: everything_arrived(manager))
    ended(running, ending)
    cloud.schedule_by(
        ours(
            machine_file=file,
            measured=f"unix:{tmp_path}/a.sock",
            measured_interval=5.0,
            measured_timeout=60.0,
        )
    )
    cloud.wait_for_log("Measured traffic of 1 program is known")
    assert leaf_of_the_fourth(cloud, group, "dog") == "leaf1"
    assert cloud.log(f"Group {group} is placed by the measured traffic of pairs")
    assert leaf_of_the_fourth(cloud, group, "successor") == "leaf1"

    moving = cloud.boot(1, group, hints=COMPACT, name="dog", host=HOSTS[2])
    assert leaves(TREE, [cloud.migrate(next(iter(moving)))]) == {"leaf1"}
    cloud.delete(list(moving))

    # What was read stays when the manager is gone, which is said once.
    manager.kill()
    cloud.wait_for_log("Measured traffic cannot be read")
    assert leaf_of_the_fourth(cloud, group, "dog") == "leaf1"
    assert len(cloud.log("Measured traffic cannot be read")) == 1


def test_a_new_group_is_arranged_by_a_folder_of_matrices(
    cloud: CloudProcess, program: Path, tmp_path: Path
) -> None:
    """`topolane mpi run` wrote the matrix into the folder. Four new servers with the names of those that were watched
    get two leaves with two free hosts each: those that talk share a leaf, though they are requested in another
    order. A declared profile wins, unless the operator says otherwise."""
    write(tmp_path / "topology.conf", TREE)
    folder = tmp_path / "measured"
    folder.mkdir()
    order = ("node-1", "node-3", "node-2", "node-4")
    ended(
        started(order, program, tmp_path / "ending", "--out", str(folder / "pairs.csv")), tmp_path / "ending"
    )
    (tmp_path / "declared.csv").write_text("from,to,bytes\n0,1,1000000\n2,3,1000000\n")
    options = {
        "machine_file": str(tmp_path / "topology.conf"),
        "traffic_directory": str(tmp_path),
        "measured": str(folder),
        "measured_interval": 5.0,
        "measured_timeout": 60.0,
    }
    read = "Measured traffic of 1 program is known"
    before = len(cloud.log(read))
    cloud.schedule_by(ours(**options))
    for host in (*HOSTS[2:4], *HOSTS[6:8]):
        cloud.boot(1, host=host)

    def together(*pairs: tuple[int, int], hints: dict[str, str]) -> bool:
        """Whether servers of these ranks share a leaf, in a new group of four."""
        servers = cloud.boot(4, cloud.group("new"), hints=hints, name="node")
        at = {cloud.rank(server): TREE[host][0] for server, host in servers.items()}
        cloud.delete(list(servers))
        return all(at[a] == at[b] for a, b in pairs)

    cloud.wait_for_log(read, before)
    assert together((0, 2), (1, 3), hints=COMPACT)
    declared = COMPACT | {"topolane:traffic": "declared"}
    assert together((0, 1), (2, 3), hints=declared)
    cloud.schedule_by(ours(traffic_precedence="measured", **options))
    cloud.wait_for_log(read, before + 1)
    assert together((0, 2), (1, 3), hints=declared)
