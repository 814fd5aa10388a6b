"""What test_xen_gangs.py runs in dom0 of its machine: one of the functions. Its argument is the program of the domains."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from topolane._engine import InputError
from topolane_gang import watchdog, xen
from topolane_gang.agent import Agent, Limits
from topolane_gang.xen import XenPool
from waiting import until

CORES = (2, 3)
"""The second socket."""
LONG = Limits(slice=3600)
"""No turn ends while a check looks, however slow the emulated machine is."""
HYPFS, XL = Path("/usr/sbin/xenhypfs"), Path("/usr/lib/xen-4.17/bin/xl")


def domain(name: str, *, cores: int = 2, kind: str = "", more: str = "") -> None:
    """Starts a domain; ends one of that name first."""
    subprocess.run(["xl", "destroy", name], stderr=subprocess.DEVNULL)
    file = Path(f"/run/{name}.cfg")
    file.write_text(
        f'name="{name}"\nkernel="{sys.argv[2]}"\nmemory=8\nvcpus={cores}\nextra="{kind}"\n{more}\n'
    )
    xen.xl("create", str(file))


def paused(name: str) -> bool:
    """Whether Xen says so."""
    return xen.xl("list", name).splitlines()[1].split()[4][2] == "p"


def had(name: str) -> float:
    """Seconds on cores."""
    return float(xen.xl("list", name).splitlines()[1].split()[5])


def computes(name: str) -> None:
    """Waits until a domain gets something done."""
    before = had(name)
    until(lambda: had(name) > before, f"{name} computes")


def rests(name: str) -> bool:
    """Whether a domain gets nothing done for some seconds."""
    before = had(name)
    time.sleep(5)
    return had(name) == before


def is_as_before() -> bool:
    """Whether all cores and domains are in dom0's pool, which is the only one."""
    pools = {name: sorted(cores) for name, (cores, _) in xen.pools().items()}
    return pools == {"Pool-0": [0, 1, 2, 3]} and {one.pool for one in xen.domains()} == {"Pool-0"}


def by_pauses(policy: str = "gang", limits: Limits = LONG) -> Agent:
    """An agent that switches itself."""
    return Agent(policy, limits=limits, pool=XenPool(policy, CORES, "pause"))


def by_sockets() -> Agent:
    """An agent that has Xen switch whole sockets."""
    return Agent("gang", pool=XenPool("gang", CORES))


def elsewhere() -> int:
    """An agent in a process of its own, that has let a run and paused b. Returns the process."""
    for name in {"a", "b"} - {one.name for one in xen.domains()}:
        domain(name)
    process = os.fork()
    if process == 0:
        with by_pauses() as agent:
            agent.adopt_domain("a", xen.domain("a"))
            agent.adopt_domain("b", xen.domain("b"))
            time.sleep(3600)
        os._exit(0)
    until(lambda: xen.domain("b").pool != "Pool-0", "b is in the agent's pool")
    until(lambda: paused("b"), "b is paused")
    return process


def watchdog_of(agent: int) -> int:
    """The watchdog of an agent."""
    (found,) = [process for process, fields in watchdog.stats() if int(fields[1]) == agent]
    return found


def pauses() -> None:
    """A domain waits paused for its slice, is let go, and is left as it was."""
    domain("a")
    domain("b")
    xen.xl("vcpu-pin", "b", "1", "0-2", "3")
    xen.xl("sched-credit2", "-d", "b", "-w", "500", "-c", "150")
    before = xen.taken(xen.domain("b"))
    with by_pauses() as agent:
        print("switched by", agent.switched_by, *agent.means.missing, flush=True)
        agent.adopt_domain("a", xen.domain("a"))
        job = agent.adopt_domain("b", xen.domain("b"))
        until(lambda: paused("b") and job.state() == "stopped", "b is paused")
        assert rests("b")
        computes("a")
        agent.end(job)
        computes("b")
        assert xen.taken(xen.domain("b")) == before
        agent.adopt_domain("b", xen.domain("b"))
        until(lambda: paused("b"), "it is paused again")
    computes("b")
    assert xen.taken(xen.domain("b")) == before
    assert is_as_before()


def turns() -> None:
    """Two domains that compute all the time take turns, and have the share of their weights."""
    domain("a", kind="busy")
    domain("b", kind="busy")
    with by_pauses("adaptive", Limits(slice=0.1)) as agent:
        agent.adopt_domain("a", xen.domain("a"), weight=3)
        agent.adopt_domain("b", xen.domain("b"))
        # The first was alone until the second came.
        before = [job.cpu for job in agent.jobs()]
        until(lambda: all(job.cpu > had + 5 for job, had in zip(agent.jobs(), before)), "both had seconds")
        a, b = agent.jobs()
        assert sorted(first for _, first, _ in agent.round().slices) == [[a.id], [b.id]]
        ratio = (a.cpu - before[0]) / (b.cpu - before[1])
        print("the shares are as", ratio, flush=True)
        assert {job.stopping for job in (a, b)} == {"pause"}
    xen.xl("destroy", "a")
    xen.xl("destroy", "b")
    assert is_as_before()


def killed() -> None:
    """The agent dies by kill -9: nothing stays paused, and all is as before."""
    process = elsewhere()
    os.kill(process, signal.SIGKILL)
    os.wait()
    until(lambda: not paused("b"), "b is not paused")
    computes("b")
    until(is_as_before, "domains and cores are back")


def both_killed() -> None:
    """The agent and its watchdog die by kill -9: the next agent lets all run before it makes its pool."""
    process = elsewhere()
    watching = watchdog_of(process)
    os.kill(process, signal.SIGSTOP)
    os.kill(watching, signal.SIGKILL)
    os.kill(process, signal.SIGKILL)
    os.wait()
    assert paused("b")
    XenPool("gang", CORES, "pause")
    computes("b")
    assert is_as_before()


def silent() -> None:
    """The watchdog lets all run while the agent is silent. When it goes on, one pause is one pause."""
    process = elsewhere()
    os.kill(process, signal.SIGSTOP)
    until(lambda: not paused("b"), "b is not paused")
    os.kill(process, signal.SIGCONT)
    until(lambda: paused("b"), "b is paused again")
    os.kill(process, signal.SIGTERM)
    os.wait()
    until(lambda: not paused("b"), "b is not paused when the agent has ended")
    computes("b")
    until(is_as_before, "domains and cores are back")


def dies() -> None:
    """A domain that ends while it is paused is a job that ended; the others go on."""
    identity = 'uuid="293dfa8a-ea72-11f1-ba67-525400123456"'
    domain("a")
    domain("b", more=identity)
    with by_pauses() as agent:
        stays = agent.adopt_domain("a", xen.domain("a"))
        ends = agent.adopt_domain("b", xen.domain("b"))
        until(lambda: paused("b"), "b is paused")
        xen.xl("destroy", "b")
        until(lambda: ends.state() == "ended", "its job has ended")
        until(lambda: [first for _, first, _ in agent.round().slices] == [[stays.id]], "the other is alone")
        domain("b", more=identity)
        agent.adopt_domain("b", xen.domain("b"))
        until(lambda: paused("b"), "a domain that has restarted is another job")
        xen.xl("destroy", "a")
        until(lambda: not paused("b"), "the next runs when the first ends in its slice")
    assert is_as_before()


def switched_by_xen() -> None:
    """Under gang, the pool has the granularity socket, and Xen's slices and weights are those that were asked for."""
    domain("a")
    with Agent("gang", limits=Limits(slice=0.1), pool=(pool := XenPool("gang", CORES))) as agent:
        agent.adopt_domain("a", xen.domain("a"), weight=2)
        number = xen._number(pool.name)
        place = f"/cpupool/{number}/sched-gran"
        said = subprocess.run(["xenhypfs", "cat", place], capture_output=True, text=True).stdout
        assert (said.strip(), agent.switched_by) == ("socket", "pool"), said
        assert "tslice=100ms" in xen.xl("sched-credit", "-s", "-p", pool.name)
        assert xen.SHARES.findall(xen.xl("sched-credit", "-d", "a")) == [("512", "0")]
        assert xen.pools()[pool.name] == ([2, 3], "credit")
        computes("a")
    assert is_as_before()


def topolane(*words: str) -> subprocess.Popen[str]:
    """A command of Topolane."""
    command = [sys.executable, "-c", "from topolane.cli import main; main()", "gang", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def commands() -> None:
    """The commands of the guide."""
    domain("a")
    agent = topolane("run", "--xen", "--cores", "2-3", "--policy", "adaptive")
    until(lambda: [2, 3] in [sorted(cores) for cores, _ in xen.pools().values()], "the pool is made")
    added = topolane("add", "--xen", "a", "--weight", "2").communicate()
    assert added == ("1\n", ""), added
    shown = json.loads(topolane("list", "--json").communicate()[0])
    assert [(job["name"], job["threads"], job["weight"]) for job in shown["jobs"]] == [("a", 2, 2)]
    assert (shown["agent"]["switched_by"], shown["agent"]["cores"]) == ("pause", [2, 3])
    wrong = topolane("add", "--xen", "absent")
    assert wrong.communicate() == ("", "topolane: Xen knows no domain absent\n")
    assert wrong.returncode == 2
    assert topolane("stop", "a").communicate() == ("a ended\n", "")
    assert xen.domain("a").pool == "Pool-0"
    topolane("stop").communicate()
    print(*agent.communicate(), flush=True)
    assert agent.returncode == 0
    assert is_as_before()


def refused(what: str, sentence: str, wrong: Callable[[], object]) -> None:
    """Whether an agent refuses something in these words, and changes nothing."""
    try:
        wrong()
    except InputError as error:
        assert sentence in str(error), f"{what}: {error}"
        print(f"refused: {error}", flush=True)
        return
    raise AssertionError(f"{what} is not refused")


def bad_input() -> None:
    """What cannot be is refused in a sentence."""
    domain("a")
    domain("wide", cores=3)
    refused("an unknown domain", "Xen knows no domain absent", lambda: xen.domain("absent"))
    refused("dom0", "is dom0, in which the agent runs", lambda: xen.domain("Domain-0"))
    refused("no cores", "name them by --cores", lambda: XenPool("gang", None))
    refused("half a socket", "socket 1 also has the cores 3", lambda: XenPool("gang", [2]))
    refused("all cores", "dom0 needs at least one core", lambda: XenPool("gang", range(4)))
    refused("a core too many", "7 is not a core of this machine", lambda: XenPool("free", [7]))
    refused("a policy", "Xen itself knows the policies gang, free", lambda: XenPool("batch", CORES, "pool"))
    with by_pauses() as agent:
        refused(
            "a wide domain",
            "wide has 3 virtual processors, and the pool has 2 cores",
            lambda: agent.adopt_domain("wide", xen.domain("wide")),
        )
        xen.xl("pause", "a")
        refused(
            "a paused domain", "is paused already, not by", lambda: agent.adopt_domain("a", xen.domain("a"))
        )
        assert paused("a"), "the operator's pause stays"
        xen.xl("unpause", "a")
        with subprocess.Popen(["sleep", "600"]) as other:
            refused("a process", "runs nothing but domains of Xen", lambda: agent.adopt("one", [other.pid]))
            other.kill()
        agent.adopt_domain("a", xen.domain("a"))
        refused("the same", "belongs to another job", lambda: agent.adopt_domain("x", xen.domain("a")))
        refused("its pool", "which has domains in it: a", lambda: XenPool("free", [2]))
    assert is_as_before()


@contextlib.contextmanager
def hidden(file: Path, by: Path = Path("/dev/null")) -> Iterator[None]:
    """Another file is in the place of this one."""
    subprocess.run(["mount", "--bind", by, file], check=True)
    yield
    subprocess.run(["umount", file], check=True)


def instead_of(tool: Path, first: str) -> Path:
    """A program that does a line of shell first, then what the tool does."""
    real, made = Path(f"/run/{tool.name}-itself"), Path(f"/run/{tool.name}-other")
    real.write_bytes(tool.read_bytes())
    made.write_text(f'#!/bin/sh\n{first}\nexec {real} "$@"\n')
    for program in (real, made):
        program.chmod(0o755)
    return made


def library_removed() -> None:
    """The library is removed while a domain is paused: the watchdog has it already, and nothing stays paused."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    (library,) = Path("/usr/lib/x86_64-linux-gnu").glob("libxenctrl.so.*.*.*")
    domain("b")
    xen.xl("pause", "b")
    record = Path("/run/of-an-agent.json")
    taken = xen.Taken(xen.domain("b"), []).record()
    record.write_text(json.dumps({"library": xen.library(), "domains": [taken]}))
    command = [sys.executable, "-I", "-S", watchdog.__file__, str(record)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0) as watching:
        pipe, maps = watching.stdin, Path(f"/proc/{watching.pid}/maps")
        assert pipe
        # A silent agent's domains run at once: the pipe needs signs of life.
        until(lambda: pipe.write(b".") and library.name in maps.read_text(), "the watchdog has loaded it")
        with hidden(library):
            pipe.close()
            watching.wait()
    assert not paused("b")
    computes("b")


def killed_at_start() -> None:
    """The agent dies while it makes its pool: the watchdog gives the cores back."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    with hidden(HYPFS, instead_of(HYPFS, '[ "$1" = write ] && exec sleep 3600')):
        process = os.fork()
        if process == 0:
            by_sockets()
            os._exit(0)
        until(lambda: len(xen.pools()) == 2, "it makes its pool")
        os.kill(process, signal.SIGTERM)
        os.wait()
        until(is_as_before, "the cores are back")


def without_tools() -> None:
    """What is missing is named, and nothing is changed. Files are hidden in a mount namespace of this process."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    # First of all: a library that was loaded once stays so.
    (library,) = Path("/usr/lib/x86_64-linux-gnu").glob("libxenctrl.so.*.*.*")
    with hidden(library):
        refused("no library", "the library of this version of Xen, cannot be loaded", xen.library)
    refuses = '[ "$1" = write ] && { echo "write error: Permission denied" >&2; exit 1; }'
    with hidden(HYPFS, instead_of(HYPFS, refuses)):
        refused(
            "hypfs",
            "sched-gran of hypfs cannot be set to socket",
            by_sockets,
        )
        assert is_as_before()
    refuses = 'case "$1 $2" in "cpupool-cpu-add topolane-"*) exit 0;; esac'
    with hidden(XL, instead_of(XL, refuses)):
        refused(
            "no core",
            "cores 2,3: Xen does not move them to another pool",
            by_sockets,
        )
        assert is_as_before()
    os.environ["PATH"] = "/nowhere"
    refused("no tools", "xl is missing: install Xen's tools in dom0", xen.library)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("all is well")
