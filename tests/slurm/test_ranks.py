"""Rank i runs on the i-th node of the order that was chosen, by srun and by mpiexec; who asks for nothing
gets what Slurm gives.

All nodes are on one host: a process is told apart by SLURMD_NODENAME, the node whose daemon started it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from live_cluster import Cluster, until

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from topolane import Machine, Policy
from topolane.live.journal import Recorder
from topolane.slurm.client import LONGEST_COMMENT, Slurm
from topolane.slurm.fabric import topology_conf
from topolane.slurm.mirror import Mirror
from topolane.slurm.requests import RequestSettings

TOPOLANE = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm"]
ENDED = ("COMPLETED", "FAILED")
ORDER = "node14,node[3,9]"
REPORT = "sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME'"
# srun in the place of ssh, since nodes have no host of their own here.
AGENT = '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n' + (
    'exec srun --overlap --quiet -N1 -n1 -w "$host" sh -c "$*"\n'
)


def needs(*tools: str, package: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(tools)}: package {package}")


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [*TOPOLANE, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, **options)


@pytest.fixture(scope="module")
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with the plugin, installed by the line that the command prints."""
    if not Path("/usr/include/slurm/spank.h").exists() or shutil.which("cc") is None:
        pytest.skip("needs cc and slurm/spank.h: packages gcc, libslurm-dev")
    done = command("spank", "--build", tmp_path_factory.mktemp("plugin"), "--cc", "cc -Wall -Wextra -Werror")
    assert done.returncode == 0, done.stderr
    plugstack = cluster.directory / "plugstack.conf"
    plugstack.write_text(done.stdout)
    yield cluster
    plugstack.unlink()


def output(cluster: Cluster, directory: Path, lines: Sequence[str], *asked: str) -> list[str]:
    """What a batch script prints in a job that is released as the daemon does it."""
    script, printed = directory / "job.sh", directory / "printed"
    script.write_text("\n".join(["#!/bin/bash", *lines]) + "\n")
    job = int(cluster.run("sbatch", "--parsable", f"--output={printed}", "--time=15", *asked, script))
    comment = f"topolane: as asked on {ORDER} | my own"
    body = {"nodelist": ORDER, "nodes": "3", "hold": False, "comment": comment}
    assert cluster.rest(f"job/{job}", body)["errors"] == []
    until(lambda: cluster.job(job)["job_state"] in ENDED, "the job ends")
    return printed.read_text().splitlines()


def parts(lines: Sequence[str]) -> list[list[str]]:
    """What stands between empty lines."""
    return [part.splitlines() for part in "\n".join(lines).split("\n\n")]


def ranks(lines: Sequence[str]) -> list[str]:
    """The nodes by rank, where every rank has spoken once."""
    spoken = sorted((int(line.split()[0]), line.split()[1]) for line in lines if line[:1].isdigit())
    assert [rank for rank, _ in spoken] == list(range(len(spoken))), lines
    return [node for _, node in spoken]


def numbered(*nodes: int) -> list[str]:
    return [f"node{node}" for node in nodes]


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        (
            ("-N3",),
            {
                "": numbered(14, 3, 9),
                "=2 -n6": numbered(14, 14, 3, 3, 9, 9),
                # More tasks than the job was submitted with: in further rounds.
                " -n6": numbered(14, 3, 9, 14, 3, 9),
            },
        ),
        (("-N3", "--ntasks-per-node=2"), {"": numbered(14, 14, 3, 3, 9, 9)}),
        # Slurm puts 2 tasks on node3 and node9, 1 on node14: so it stays, in another order.
        (("-N3", "-n5"), {"": numbered(14, 3, 3, 9, 9)}),
    ],
)
def test_ranks_follow_the_order_when_asked(
    plugin: Cluster, tmp_path: Path, asked: tuple[str, ...], steps: dict[str, list[str]]
) -> None:
    """`srun --topolane-ranks`: block by block in the chosen order, with the tasks per node that Slurm gave.
    The batch script finds that order in variables, and a file that goes with the job."""
    script = ["echo $TOPOLANE_NODELIST $TOPOLANE_HOSTFILE", "cat $TOPOLANE_HOSTFILE"]
    for step in steps:
        script += ["echo", f"srun --topolane-ranks{step} {REPORT}"]
    first, *spoken = parts(output(plugin, tmp_path, script, *asked))
    order, file = first[0].split()
    assert order == ORDER
    assert first[1:] == steps[""]
    assert [ranks(lines) for lines in spoken] == list(steps.values())
    until(lambda: not Path(file).parent.exists(), "the job's directory is gone")


def test_who_does_not_ask_gets_what_slurm_gives(plugin: Cluster, tmp_path: Path) -> None:
    """A plain srun, and one with a distribution of its user, in a job that was placed."""
    script = [f"srun {REPORT}", "echo", f"srun -m cyclic {REPORT}"]
    block, cyclic = parts(output(plugin, tmp_path, script, "-N3", "-n6"))
    assert ranks(block) == numbered(3, 3, 9, 9, 14, 14)
    assert ranks(cyclic) == numbered(3, 9, 14, 3, 9, 14)


def test_a_job_without_an_order_of_its_own_runs_unchanged(plugin: Cluster, tmp_path: Path) -> None:
    """No comment, another one, one that names other nodes or none: no variables, Slurm's order, no error;
    nor do the variables of a job come along from which another is submitted."""
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/bash\necho =$TOPOLANE_NODELIST$TOPOLANE_HOSTFILE=\nsrun --topolane-ranks {REPORT}\n"
    )
    asked = ("--partition=pdebug", "--nodes=2", "--ntasks=4", "--export=ALL,TOPOLANE_NODELIST=x")
    jobs = {}
    for number, comment in enumerate(
        ("", "my own", "topolane: on node71,node70", "topolane: on node[", "topolane: on ")
    ):
        printed = tmp_path / str(number)
        submit = ("sbatch", "--parsable", f"--output={printed}", f"--comment={comment}", *asked, script)
        jobs[int(plugin.run(*submit))] = printed
    for job, printed in jobs.items():
        until(lambda job=job: plugin.job(job)["job_state"] in ENDED, "the job ends")
        assert plugin.job(job)["exit_code"] == 0
        lines = printed.read_text().splitlines()
        assert lines[0] == "=="
        first, second = plugin.run("scontrol", "show", "hostnames", plugin.job(job)["nodes"]).split()
        assert ranks(lines) == [first, first, second, second]
        assert sum("was given no order of nodes" in line for line in lines) == 1
        assert len(lines) == 6, lines


def test_a_rank_map_made_in_the_job_is_followed(plugin: Cluster, tmp_path: Path) -> None:
    """Ranks 0 and 3, 1 and 4, 2 and 5 talk: `topolane map` puts each pair on a node, and so does srun."""
    (tmp_path / "traffic.csv").write_text("from,to,bytes\n0,3,1000\n1,4,1000\n2,5,1000\n")
    topolane = " ".join(map(repr, TOPOLANE[:-1]))
    machine = f"--machine {plugin.directory}/topology.conf --hosts $TOPOLANE_NODELIST --ranks-per-node 2"
    wanted = f"--traffic {tmp_path}/traffic.csv --format slurm-arbitrary --out {tmp_path}/map"
    script = [f"{topolane} map {machine} {wanted} >/dev/null", f"SLURM_HOSTFILE={tmp_path}/map srun {REPORT}"]
    hosts = ranks(output(plugin, tmp_path, script, "-N3", "-n6"))
    assert hosts == (tmp_path / "map").read_text().split()
    assert hosts[:3] == hosts[3:]
    assert set(hosts) == set(numbered(3, 9, 14))


def test_salloc_follows_the_order_and_srun_alone_cannot(plugin: Cluster, tmp_path: Path) -> None:
    """In the shell of salloc, on the host of the user, srun follows; an srun that makes its own allocation
    says that it does not, and runs."""
    inside = f"srun --topolane-ranks {REPORT}; {' '.join(map(repr, TOPOLANE))} hosts --format mpich >hosts"
    words = ["salloc", "-N3", "-n6", "sh", "-c", inside]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    shell = subprocess.Popen(words, env=plugin.environment, cwd=tmp_path, **pipes)
    waiting = ("squeue", "-h", "-t", "PD", "-n", "interactive", "-o", "%i")
    until(lambda: plugin.run(*waiting).strip() != "", "the job waits")
    body = {"nodelist": ORDER, "nodes": "3", "hold": False, "comment": f"topolane: on {ORDER}"}
    assert plugin.rest(f"job/{plugin.run(*waiting).strip()}", body)["errors"] == []
    printed, said = shell.communicate(timeout=60)
    assert ranks(printed.splitlines()) == numbered(14, 14, 3, 3, 9, 9), said
    assert (tmp_path / "hosts").read_text() == "node14:2\nnode3:2\nnode9:2\n"
    alone = subprocess.run(
        ["srun", "--partition=pdebug", "-N1", "--topolane-ranks", "true"],
        env=plugin.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert alone.returncode == 0
    assert "use sbatch or salloc" in alone.stderr


@needs("mpicc.mpich", "mpiexec.hydra", package="mpich")
def test_mpich_follows_the_order(plugin: Cluster, tmp_path: Path) -> None:
    """By srun's PMI-2, and by mpiexec's own launcher with the host file that the command writes."""
    built = tmp_path / "report"
    subprocess.run(["mpicc.mpich", "-o", built, Path(__file__).parent / "report_rank.c"], check=True)
    (tmp_path / "agent").write_text(AGENT)
    (tmp_path / "agent").chmod(0o755)
    hosts = f"{' '.join(map(repr, TOPOLANE))} hosts --format mpich --out {tmp_path}/hosts"
    mpiexec = f"mpiexec.hydra -launcher ssh -launcher-exec {tmp_path}/agent -f {tmp_path}/hosts -n 6 {built}"
    # mpiexec hands its environment on, and with it the node that it runs on itself.
    lines = [f"srun --topolane-ranks --mpi=pmi2 {built}", "echo", hosts, "export -n SLURMD_NODENAME", mpiexec]
    for printed in parts(output(plugin, tmp_path, lines, "-N3", "--ntasks-per-node=2")):
        assert ranks(printed) == numbered(14, 14, 3, 3, 9, 9), printed


@needs("mpirun.openmpi", package="openmpi-bin")
def test_open_mpi_follows_the_order(plugin: Cluster, tmp_path: Path) -> None:
    """Its launcher under Slurm, with the files that the command writes inside the job."""
    script = ["export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]
    for form, option in (("rankfile", "--rankfile"), ("hostfile", "--map-by seq --hostfile")):
        script.append(f"{' '.join(map(repr, TOPOLANE))} hosts --format {form} --out {tmp_path}/hosts")
        report = "sh -c 'echo $OMPI_COMM_WORLD_RANK $SLURMD_NODENAME'"
        script += [f"mpirun.openmpi {option} {tmp_path}/hosts {report}", "echo"]
    for printed in parts(output(plugin, tmp_path, script, "-N3", "-n6")):
        assert ranks(printed) == numbered(14, 14, 3, 3, 9, 9), printed


class LastFirst(Policy):
    """The free nodes from the end of the machine, in descending order."""

    def choose(self, request: Any, state: Any) -> list[int]:
        return [node for node, free in reversed(list(enumerate(state.free))) if free][: request.nodes]


def test_the_order_of_a_policy_reaches_the_ranks(plugin: Cluster, tmp_path: Path) -> None:
    """A policy that places in descending order: the comment that the driver writes names the nodes in it,
    and so do the ranks."""
    machine = Machine.parse(topology_conf(plugin.run("scontrol", "show", "topology")), "topology", "slurm")
    recorder = Recorder(machine, LastFirst(), "easy", lambda *_, **__: None)
    mirror = Mirror(RequestSettings(machine), recorder, frozenset({"pbatch"}))
    printed = tmp_path / "printed"
    wrap = f"--wrap=srun --topolane-ranks {REPORT}"
    job = int(plugin.run("sbatch", "--parsable", f"--output={printed}", "-N4", "-x", "node71", wrap))
    slurm = Slurm(f"unix:{plugin.facts['SOCKET']}")
    mirror.update(slurm.snapshot())
    (start,) = [start for start in mirror.decide(0.0) if start.job.id == job]
    assert machine.nodes_named(start.hosts) == start.decision.nodes
    assert [machine.node_name(node) for node in start.decision.nodes] == numbered(72, 70, 69, 68)
    slurm.release(start.job, start.hosts, 4, f"topolane: on {start.hosts}")
    slurm.close()
    until(lambda: plugin.job(job)["job_state"] == "COMPLETED", "the job ends")
    assert ranks(printed.read_text().splitlines()) == numbered(72, 70, 69, 68)


def test_a_comment_that_is_too_long_does_not_keep_a_job_from_starting(plugin: Cluster) -> None:
    """Slurm refuses a release whose comment is longer than 1,024 bytes, as the names of some 250 scattered
    nodes are: it is cut, and then names no order."""
    job = plugin.submit("-N2", script="true")
    long = "topolane: on " + ",".join(numbered(*range(1296, 0, -1)))
    refused = plugin.rest(f"job/{job}", {"comment": long[: LONGEST_COMMENT + 1]})["errors"]
    assert [error["error_number"] for error in refused] == [2012]
    slurm = Slurm(f"unix:{plugin.facts['SOCKET']}")
    slurm.release(slurm.snapshot().jobs[job], "node[1-2]", 2, long)
    slurm.close()
    until(lambda: plugin.job(job)["job_state"] == "COMPLETED", "the job ends")
    assert len(plugin.job(job)["comment"]) == LONGEST_COMMENT


def test_what_cannot_be_done_is_one_sentence(plugin: Cluster, tmp_path: Path) -> None:
    """Exit code 2: no compiler, no header, no job, a job without nodes, one that was given no order."""
    waiting = plugin.submit("-N2", "--hold", script="true")
    unplaced = plugin.submit("--partition=pdebug", "-N2")
    until(lambda: plugin.job(unplaced)["job_state"] == "RUNNING", "it runs")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    for words, environment, said in (
        (("spank", "--build", tmp_path, "--cc", "no-such-cc"), outside, "--cc no-such-cc: cannot be started"),
        (("spank", "--build", tmp_path, "--cc", "cc -nostdinc"), outside, "error: no include path"),
        (("hosts",), outside, "the job is missing"),
        (("hosts", "x"), plugin.environment, "'x' is no number of a job"),
        (("hosts", 99999), plugin.environment, "Invalid job id"),
        (("hosts", waiting), plugin.environment, f"job {waiting} has no nodes: it is PENDING"),
        (("hosts", unplaced), plugin.environment, f"job {unplaced} was given no order of nodes"),
    ):
        done = command(*words, env=environment)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
    assert list(tmp_path.iterdir()) == []
    plugin.run("scancel", waiting, unplaced)
    until(lambda: plugin.job(unplaced)["job_state"] == "CANCELLED", "it is gone")
