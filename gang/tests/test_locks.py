"""Locks of agents: another user cannot take them, and they end with their process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE, until

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()"]
CORE = min(os.sched_getaffinity(0))
OTHER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

# The interpreter may be where only root reads: a process becomes the user when it has all its modules.
BECOME = """
import fcntl, os, socket, sys, time
from topolane_gang.agent_files import CoreLocks, directory
os.umask(0o022)
if (user := int(sys.argv.pop(1))) != os.geteuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
"""

TAKES_SOCKETS = """
held = []
for name in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        held.append(socket.socket(socket.AF_UNIX, kind))
        held[-1].bind("\\0" + name)
        kind == socket.SOCK_STREAM and held[-1].listen()
print("ready", flush=True)
sys.stdin.read()
"""

TAKES_FILES = """
held = []
for folder in sys.argv[1:]:
    for name in os.listdir(folder) if os.access(folder, os.R_OK) else []:
        for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            try:
                held.append(os.open(os.path.join(folder, name), flags))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pass
print("ready", flush=True)
sys.stdin.read()
"""

HOLDS = """
directory()
held = CoreLocks((int(sys.argv[1]),))
print("ready", flush=True)
{then}
sys.stdin.read()
"""


@contextlib.contextmanager
def another_process(
    script: str, *words: object, user: int | None = None, **more: Any
) -> Iterator[subprocess.Popen[str]]:
    """A process that runs during the test, and is ready."""
    command = [sys.executable, "-c", BECOME + script, str(os.geteuid() if user is None else user)]
    command += map(str, words)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", **more
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def agent(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """An agent on a core, with one short job."""
    command = [*MAIN, "gang", "run", "--cores", str(CORE), "--socket", str(tmp_path / "control")]
    return subprocess.run(
        [*command, "--switch-by", "signals", "--", "true"], capture_output=True, text=True, timeout=DEADLINE
    )


@as_root
def test_a_user_who_takes_names_of_sockets_cannot_keep_agents_from_their_cores(tmp_path: Path) -> None:
    """A user who takes every abstract socket that is named after a core cannot keep root's agent from it."""
    with another_process(TAKES_SOCKETS, f"topolane-gang-core-{CORE}", user=OTHER):
        done = agent(tmp_path)
    assert done.returncode == 0, done.stderr


@as_root
def test_a_user_cannot_open_the_locks_of_root(tmp_path: Path) -> None:
    """A user who opens and locks whatever can be opened below /run cannot keep root from a lock."""
    assert agent(tmp_path).returncode == 0
    folders = [str(folder) for folder in Path("/run").glob("topolane*") if folder.is_dir()]
    with another_process(TAKES_FILES, *folders, user=OTHER):
        done = agent(tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def homes() -> Iterator[Callable[[int], Path]]:
    """Makes folders of users that these can reach."""
    made: list[tempfile.TemporaryDirectory[str]] = []

    def home(user: int) -> Path:
        made.append(tempfile.TemporaryDirectory(dir="/tmp"))
        os.chown(made[-1].name, user, user)
        return Path(made[-1].name)

    yield home
    for one in made:
        one.cleanup()


@as_root
def test_a_user_cannot_keep_another_from_a_folder_in_tmp(homes: Callable[[int], Path]) -> None:
    """A user who makes the folder in /tmp that another user's agent would use cannot keep that agent from starting."""
    victim = 65533
    planted = Path(f"/tmp/topolane-gang-{victim}")
    planted.mkdir()
    os.chown(planted, OTHER, OTHER)
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    try:
        home = str(homes(victim))
        with another_process(HOLDS.format(then=""), CORE, user=victim, env=environment | {"HOME": home}):
            pass
    finally:
        planted.rmdir()


@as_root
def test_an_agent_of_a_user_leaves_cores_to_root(homes: Callable[[int], Path]) -> None:
    """A user cannot start an agent on a core that root's agent has."""
    with another_process(HOLDS.format(then=""), CORE) as holder:
        done = subprocess.run(
            [sys.executable, "-c", BECOME + "CoreLocks((int(sys.argv[1]),))", str(OTHER), str(CORE)],
            env=os.environ | {"XDG_RUNTIME_DIR": str(homes(OTHER))},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert f"core {CORE}: another agent (process {holder.pid}) has it already" in done.stderr


def test_a_lock_names_its_process_and_ends_with_it(tmp_path: Path) -> None:
    """A process that is killed cannot keep its locks; until then the refusal names it."""
    with another_process(HOLDS.format(then=""), CORE) as holder:
        done = agent(tmp_path)
        assert done.returncode == 2
        assert f"core {CORE}: another agent (process {holder.pid}) has it already" in done.stderr
        holder.kill()
        holder.wait()
        assert agent(tmp_path).returncode == 0


@pytest.mark.parametrize(
    "then",
    [
        "import subprocess; child = subprocess.Popen(['sleep', '600'], close_fds=False); print(child.pid, flush=True)",
        "import os\nchild = os.fork()\nif child == 0:\n    time.sleep(600)\nprint(child, flush=True)",
    ],
    ids=["exec", "fork"],
)
def test_children_do_not_inherit_locks(tmp_path: Path, then: str) -> None:
    """A child that outlives its parent cannot keep the parent's locks."""
    with another_process(HOLDS.format(then=then), CORE) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            holder.kill()
            holder.wait()
            until(lambda: agent(tmp_path).returncode == 0, "the core is free")
        finally:
            os.kill(child, 9)
