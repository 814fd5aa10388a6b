"""What the live tests rely on: a real Slurm that starts jobs and leaves no trace."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from live_cluster import Cluster, running, script
from waiting import until


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose path is short enough for sockets."""
    return tmp_path_factory.mktemp("slurm")


def processes(directory: Path) -> list[str]:
    """Command lines of processes started under a directory: its daemons, their helpers, their jobs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            place = os.readlink(process / "cwd")
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # gone meanwhile, or a zombie, which has no environment
        if str(directory).encode() in environment or place.startswith(str(directory)):
            found.append(command)
    return found


def listening() -> dict[int, set[str]]:
    """Addresses, in hexadecimal, on which some process listens, by port (state 0A of /proc/net/tcp)."""
    found: dict[int, set[str]] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:] if Path(table).exists() else []:
            local, state = line.split()[1], line.split()[3]
            if state == "0A":
                address, port = local.split(":")
                found.setdefault(int(port, 16), set()).add(address)
    return found


def test_all_nodes_are_idle_under_the_topology_asked_for(cluster: Cluster) -> None:
    """72 nodes; a leaf has 6 nodes, a pod 3 leaves, and one core joins the 4 pods."""
    nodes = cluster.rest("nodes")["nodes"]
    assert {node["name"] for node in nodes} == {f"node{n}" for n in range(1, 73)}
    shown = cluster.run("scontrol", "show", "topology")
    switches = dict(re.findall(r"SwitchName=(\S+) .*?Nodes=(\S+)", shown))
    levels = dict(re.findall(r"SwitchName=(\S+) Level=(\d)", shown))
    for leaf in range(12):
        assert switches[f"leaf{leaf + 1}"] == f"node[{6 * leaf + 1}-{6 * leaf + 6}]"
    for pod in range(4):
        assert switches[f"pod{pod + 1}"] == f"node[{18 * pod + 1}-{18 * pod + 18}]"
    assert switches["core"] == "node[1-72]"
    assert sorted(levels.values()) == ["0"] * 12 + ["1"] * 4 + ["2"]
    assert len(set(cluster.run("sinfo", "-hN", "-t", "idle", "-o", "%N").split())) == 72


def test_slurmrestd_answers(cluster: Cluster) -> None:
    answer = cluster.rest("diag")
    assert answer["errors"] == []
    assert answer["meta"]["plugin"]["type"] == f"openapi/{cluster.facts['REST_VERSION']}"
    assert answer["statistics"]["server_thread_count"] >= 1


def test_every_daemon_listens_on_loopback_only(cluster: Cluster) -> None:
    """127.0.0.1 in /proc/net/tcp is 0100007F."""
    ports, (first, last) = listening(), cluster.ports()
    assert [ports.get(port) for port in range(first, last + 1)] == [{"0100007F"}] * 73


def test_a_job_of_another_partition_starts_by_itself(cluster: Cluster) -> None:
    job = cluster.submit("-N2", "-p", "pdebug", script="true")
    until(lambda: cluster.job(job)["job_state"] == "COMPLETED", "the job is done")
    assert cluster.nodes(cluster.job(job)["nodes"]) <= {f"node{n}" for n in range(1, 7)}


def test_a_daemon_that_was_killed_starts_again(cluster: Cluster) -> None:
    """A node whose slurmd is gone, slurmctld and slurmrestd: all there again, and the nodes idle."""
    three = ("slurmctld", "slurmrestd", "node72")
    assert script("kill", cluster.directory, *three).returncode == 0
    with pytest.raises(OSError):
        cluster.rest("ping")
    assert listening().get(cluster.ports()[1]) is None
    assert script("start", cluster.directory, *three).returncode == 0
    assert cluster.rest("ping")["pings"][0]["ping"] == "UP"
    idle = ("sinfo", "-h", "-p", "pbatch", "-t", "idle", "-o", "%D")
    until(lambda: cluster.run(*idle).strip() == "72", "all nodes are idle")


def test_down_leaves_no_process_and_no_port(cluster: Cluster, place: Path) -> None:
    """A second cluster on the same host, with jobs that run; the first goes on."""
    with running(4, place) as second:
        job = second.submit("-N4", script="srun sleep 600")
        until(lambda: any("sleep 600" in line for line in processes(place)), f"job {job} has its steps")
        first, last = second.ports()
        assert set(range(first, last + 1)) <= set(listening())
        assert not set(range(first, last + 1)) & set(range(cluster.ports()[0], cluster.ports()[1] + 1))
        assert script("down", place).returncode == 0
        assert processes(place) == []
        assert not set(range(first, last + 1)) & set(listening())
    assert cluster.rest("ping")["pings"][0]["ping"] == "UP"


def test_a_start_that_fails_halfway_leaves_nothing(slurm: None, place: Path) -> None:
    """munged is up when slurmctld refuses its configuration."""
    done = script("up", 4, place, "--conf", "NoSuchKey=1")
    assert done.returncode == 1
    assert "slurmctld did not start" in done.stderr
    assert "NoSuchKey" in done.stderr
    assert processes(place) == []
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("up", "many", "DIR"), "the number of nodes is 'many'"),
        (("up", 4), "up needs a number of nodes and a directory"),
        (("up", 4, "DIR", "--select", "all"), "--select is 'all', not one of: linear cons_tres"),
        (("up", 4, "DIR", "--leaf"), "--leaf needs a value"),
        (("up", 4, "DIR", "--rest", "v0.0.1"), "--rest is 'v0.0.1', not one of: v0.0."),
        (("down", "DIR"), "there is no cluster in"),
    ],
)
def test_wrong_input_is_refused(
    slurm: None, place: Path, arguments: tuple[object, ...], sentence: str
) -> None:
    done = script(*(place if word == "DIR" else word for word in arguments))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert list(place.iterdir()) == []
