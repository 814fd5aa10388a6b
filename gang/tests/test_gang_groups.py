"""Jobs in control groups of their own: containers, units, and threads of version 2, on real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import own_groups
import pytest
from adopted_pair import WEIGHT, goes_on, pair, place
from gang_processes import CORES, SPIN, computes, lives, needs_two_cores
from quiet_cores import QuietCores
from test_gang_commands import daemon, gang, jobs
from topolane._engine import InputError
from topolane_gang import control_groups
from topolane_gang.agent import Agent, AgentJob, Limits
from topolane_gang.agent_files import release_abandoned
from topolane_gang.control_groups import OwnGroup
from waiting import DEADLINE, until

ME = os.getpid()
KINDS = ["freeze", "freezer"]
THREADS = """
import hashlib, threading
for _ in range(3):
    threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 2**31 - 1)).start()
"""
"""A process with three threads that compute, none of them with Python's lock, and one that waits for them."""


@pytest.fixture
def mount(request: pytest.FixtureRequest) -> Path:
    """Where groups of a kind can be made."""
    kind = getattr(request, "param", "freeze")
    found = own_groups.mounts().get(kind)
    if found is None:
        pytest.skip(f"no control group of the kind {kind} may be made here")
    return found


@contextlib.contextmanager
def spinning(mount: Path, name: str) -> Iterator[tuple[Path, list[int]]]:
    """A group with a process, and one below it with another; both compute."""
    with own_groups.group(mount, name, "inside") as made:
        busy = ["sh", "-c", "while :; do :; done"]
        processes = [own_groups.start(made / below, busy) for below in ("", "inside")]
        numbers = [each.pid for each in processes]
        until(lambda: all(map(computes, numbers)), "both compute")
        yield made, numbers
        for process in processes:
            process.kill()
            process.wait()


@needs_two_cores
@pytest.mark.parametrize("mount", KINDS, indirect=True)
def test_a_group_is_frozen_in_place_and_let_go_as_it_was(mount: Path, quiet_cores: QuietCores) -> None:
    """Rule: all in the group and below is one job, which is let run for three quarters of the time by its weight of 3
    against a job of weight 1; nothing is moved, and afterwards it has its groups, its affinity, and is not frozen."""
    with spinning(mount, f"own-{ME}.scope") as (made, busy):
        before = [place(one) for one in busy]

        def adopt(agent: Agent) -> AgentJob:
            return agent.adopt_groups("own", [OwnGroup(made)], count=2, weight=WEIGHT)

        with pair(adopt) as both:
            until(lambda: len(both.agent.switches()) > 200, "many switches")
            on, off = (sum(end - begin for begin, end in both.off(job)) for job in (both.busy, both.adopted))
            before_cpu = both.cpu(both.adopted)
            until(lambda: both.cpu(both.adopted) > before_cpu + 0.1, "it computes")
            assert [place(one)[0] for one in busy] == [groups for groups, _ in before]
            with pytest.raises(InputError, match="belongs to another job of the agent"):
                adopt(both.agent)
        assert goes_on(busy)
        assert [place(one) for one in busy] == before
        assert not own_groups.frozen(made)
    quiet_cores.judge(0.7 < on / (on + off) < 0.8, (on, off))


# An agent that keeps a group stopped for a minute while another job computes.
AGENT = f"""
import sys, time
from pathlib import Path
from topolane_gang.agent import Agent, Limits
from topolane_gang.control_groups import OwnGroup
agent = Agent("gang", {CORES[:1]}, Limits(slice=60))
agent.start("runs", [sys.executable, "-c", "while True: pass"], output="/dev/null")
while not agent.switches():
    time.sleep(0.01)
agent.adopt_groups("own", [OwnGroup(Path(sys.argv[1]))], count=1)
print(agent.watchdog_pid, *[job.pid for job in agent._jobs.values() if job.pid], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("with_watchdog", [False, True])
@pytest.mark.parametrize("mount", KINDS, indirect=True)
def test_a_group_is_thawed_when_its_agent_is_killed(mount: Path, with_watchdog: bool) -> None:
    """Rule: after `kill -9` of the agent its watchdog thaws the group; if that is killed too, the next agent does.
    Either gives the threads the affinity that they had."""
    with spinning(mount, f"own-{ME}.scope") as (made, busy):
        before = [place(one) for one in busy]
        agent = subprocess.Popen([sys.executable, "-c", AGENT, made], stdout=subprocess.PIPE, text=True)
        assert agent.stdout is not None
        watchdog, runs = map(int, agent.stdout.readline().split())
        try:
            until(lambda: own_groups.frozen(made) and not computes(busy[0]), "it is frozen")
            if with_watchdog:
                os.kill(watchdog, signal.SIGKILL)
            os.kill(agent.pid, signal.SIGKILL)
            agent.wait()
            until(lambda: not lives(watchdog), "the watchdog ends")
            release_abandoned()
            assert goes_on(busy)
            assert not own_groups.frozen(made)
            assert [place(one) for one in busy] == before
        finally:
            agent.kill()
            agent.communicate()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(runs, signal.SIGKILL)
            release_abandoned()


def started(made: Path) -> subprocess.Popen[bytes]:
    """A process that computes in a group."""
    process = own_groups.start(made, ["sh", "-c", "while :; do :; done"])
    until(lambda: computes(process.pid), "it computes")
    return process


@pytest.mark.parametrize("mount", KINDS, indirect=True)
def test_a_job_is_lost_whose_group_is_removed_though_it_is_alone(mount: Path) -> None:
    """Rule: a job that is never switched, since it is alone, is lost once its group is removed. Its processes run on."""
    made = mount / f"own-{ME}.scope"
    made.mkdir()
    process = started(made)
    with Agent("gang", CORES) as agent:
        job = agent.adopt_groups("own", [OwnGroup(made)])
        (mount / "cgroup.procs").write_text(str(process.pid))
        made.rmdir()
        until(lambda: job.state() == "lost", "it is lost")
        assert goes_on([process.pid])
    process.kill()
    process.wait()


@pytest.mark.parametrize("mount", KINDS, indirect=True)
def test_a_unit_that_starts_again_in_the_same_group_is_adopted_again(mount: Path) -> None:
    """Rule: a job that has ended holds no group."""
    with Agent("gang", CORES) as agent, own_groups.group(mount, f"own-{ME}.scope") as made:
        for _ in range(2):
            process = started(made)
            job = agent.adopt_groups("own", [OwnGroup(made)])
            process.kill()
            process.wait()
            job.wait(DEADLINE)
            assert job.state() == "ended"


@pytest.mark.parametrize("mount", KINDS, indirect=True)
def test_units_and_containers_are_found_by_name(mount: Path) -> None:
    """Rule: a unit is the group of its name, a container the group whose name has its ID; what has no process, or
    two places, is refused with what to do."""
    number = f"{ME:08x}" + "ab" * 28
    with spinning(mount, f"docker-{number}.scope") as (made, _):
        assert control_groups.container(number) == control_groups.container(number[:12]) == made
        assert control_groups.unit(made.name) == made
        assert control_groups.group(str(made)) == control_groups.group(f"/{made.name}") == made
        with (
            spinning(mount, f"crio-{number}.scope"),
            pytest.raises(InputError, match="several: .*: use --cgroup"),
        ):
            control_groups.container(number[:12])
    with (
        own_groups.group(mount, f"empty-{ME}.service"),
        pytest.raises(InputError, match="no control group with proc"),
    ):
        control_groups.unit(f"empty-{ME}")
    with pytest.raises(InputError, match="container 'web': give its ID"):
        control_groups.container("web")
    with pytest.raises(InputError, match="unit '': give the name of"):
        control_groups.unit("")
    with pytest.raises(InputError, match="control group /nowhere: no such group that freezes"):
        control_groups.group("/nowhere")


@pytest.mark.parametrize("mount", KINDS, indirect=True)
def test_what_must_not_be_frozen_is_refused_and_left_alone(mount: Path) -> None:
    """Rule: a group with the agent or init in it, an empty one, and one that others have frozen are refused. The
    agent thaws nothing that it has not frozen."""
    with Agent("gang", CORES) as agent, own_groups.group(mount, f"own-{ME}.scope") as made:
        for group, said in (
            (made, "has no process"),
            (mount, "is no control group that freezes|which is (init|the agent)"),
        ):
            with pytest.raises(InputError, match=f"job own: .*({said})"):
                agent.adopt_groups("own", [OwnGroup(group)])
        process = own_groups.start(made, ["sleep", "600"])
        until(lambda: (made / "cgroup.procs").read_text(), "it is there")
        file, value = (
            ("cgroup.freeze", "1") if (made / "cgroup.freeze").exists() else ("freezer.state", "FROZEN")
        )
        (made / file).write_text(value)
        with pytest.raises(InputError, match="is frozen already, not by this agent"):
            agent.adopt_groups("own", [OwnGroup(made)])
        agent.close()
        assert own_groups.frozen(made)
        own_groups.thaw(made)
        process.kill()
        process.wait()


def test_a_group_is_added_by_command_and_let_go_by_stop(mount: Path, tmp_path: Path) -> None:
    """Rule: `gang add --cgroup` and `--unit` make a job of a group; `gang stop` lets it go and ends nothing."""
    with spinning(mount, f"own-{ME}.service") as (made, busy), daemon(tmp_path, "--policy", "gang") as at:
        for words in (["--cgroup", str(made)], ["--unit", f"own-{ME}"]):
            done = gang("add", *words, "--name", "own", "--threads", "1", *at)
            assert done.returncode == 0, done.stderr
            assert jobs(at)["own"]["threads"] == 1
            assert gang("stop", "own", *at).returncode == 0
            assert goes_on(busy)
        for words in (["--container", "web"], ["--unit", f"own-{ME}", "--watch"]):
            done = gang("add", *words, *at)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert jobs(at) == {}


@contextlib.contextmanager
def threads_in(made: Path) -> Iterator[list[int]]:
    """Three threads that compute, of a process in a group."""
    process = own_groups.start(made, [sys.executable, "-c", THREADS])
    tasks = Path(f"/proc/{process.pid}/task")

    def others() -> list[int]:
        return sorted(int(task.name) for task in tasks.iterdir() if int(task.name) != process.pid)

    until(lambda: len(others()) == 3 and all(map(computes, others())), "three threads compute")
    try:
        yield others()
    finally:
        process.kill()
        process.wait()


def test_a_thread_is_stopped_and_its_sibling_runs_on(mount: Path) -> None:
    """Rule: with version 2, single threads are stopped in a threaded group below that of their process. When they are
    let go, they are in the group that they had, which is as it was."""
    with own_groups.group(mount, f"own-{ME}.scope") as made, threads_in(made) as (first, second, free):
        before = [place(one) for one in (first, second)]
        with Agent("gang", CORES, Limits(slice=60), switch_by="freeze") as agent:
            agent.start("runs", SPIN, threads=len(CORES))
            until(agent.switches, "it runs")
            job = agent.adopt("threads", threads=[first, second], count=len(CORES))
            until(lambda: not computes(first) and not computes(second), "both are stopped")
            assert goes_on([free])
            assert (made / "cgroup.type").read_text().strip() == "domain threaded"
            agent.let_go(job)
            until(lambda: not list(made.glob("topolane-gang-*")), "the group is removed")
            assert goes_on([first, second])
            assert [place(one) for one in (first, second)] == before
            assert (made / "cgroup.type").read_text().strip() == "domain"


def test_a_threaded_group_of_these_threads_alone_is_frozen_itself(mount: Path) -> None:
    """Rule: threads that stand in threaded groups without others, as libvirt's virtual cores, stay in these."""
    with own_groups.group(mount, f"own-{ME}.scope") as made, threads_in(made) as (first, second, free):
        cores = [made / f"vcpu{number}" for number in range(2)]
        for core, thread in zip(cores, (first, second), strict=True):
            core.mkdir()
            (core / "cgroup.type").write_text("threaded")
            (core / "cgroup.threads").write_text(str(thread))
        try:
            with Agent("gang", CORES, Limits(slice=60), switch_by="freeze") as agent:
                agent.start("runs", SPIN, threads=len(CORES))
                until(agent.switches, "it runs")
                agent.adopt("threads", threads=[first, second], count=len(CORES))
                assert all(map(own_groups.frozen, cores))
                until(lambda: not computes(first) and not computes(second), "both are stopped")
                assert goes_on([free])
            assert goes_on([first, second])
            assert [place(one)[0].splitlines()[-1] for one in (first, second)] == [
                f"0::/{core.relative_to(mount)}" for core in cores
            ]
        finally:
            for core, thread in zip(cores, (first, second), strict=True):
                (made / "cgroup.threads").write_text(str(thread))
                core.rmdir()


def test_threads_of_an_agent_that_was_killed_go_back(mount: Path) -> None:
    """Rule: the watchdog thaws the threaded group, and the next agent removes it."""
    with own_groups.group(mount, f"own-{ME}.scope") as made, threads_in(made) as (first, second, _):
        script = AGENT.replace(
            'agent.adopt_groups("own", [OwnGroup(Path(sys.argv[1]))], count=1)',
            'agent.adopt("own", threads=list(map(int, sys.argv[1:])), count=1)',
        ).replace("slice=60)", 'slice=60), switch_by="freeze"')
        command = [sys.executable, "-c", script, str(first), str(second)]
        agent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert agent.stdout is not None
        watchdog, runs = map(int, agent.stdout.readline().split())
        until(lambda: not computes(first) and not computes(second), "both are stopped")
        agent.kill()
        agent.communicate()
        until(lambda: not lives(watchdog), "the watchdog ends")
        assert goes_on([first, second])
        assert release_abandoned() >= 1
        assert not list(made.glob("topolane-gang-*"))
        os.killpg(runs, signal.SIGKILL)
        release_abandoned()
