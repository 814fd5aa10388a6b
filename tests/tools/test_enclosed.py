"""tools/enclosed: what tests start ends with them, and two runs of them share nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

ENCLOSED = Path(__file__).parents[2] / "tools" / "enclosed"


def enclosed(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ENCLOSED, "sh", "-c", command], capture_output=True, text=True)


@pytest.fixture(scope="module", autouse=True)
def allowed() -> None:
    if enclosed("readlink /proc/self/ns/net").stdout.strip() == os.readlink("/proc/self/ns/net"):
        pytest.skip("this process may make no namespaces")


def test_a_command_sees_two_addresses_and_an_empty_tmp_and_ends_with_its_own_code(tmp_path: Path) -> None:
    assert any(Path("/tmp").iterdir()), f"{tmp_path} is there"
    done = enclosed("ls -A /tmp; ip -br -4 address; exit 7")
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["127.0.0.1/8", "192.0.2.1/24"]
    assert done.returncode == 7


def test_two_runs_may_name_their_networks_alike() -> None:
    """`ip netns` keeps names in a folder that all namespaces would share."""
    within = "ip netns list; ip netns add alike; ip netns list"
    done = enclosed(f"ip netns add alike; {ENCLOSED} sh -c '{within}'")
    assert (done.returncode, done.stdout, done.stderr) == (0, "alike\n", "")


def test_nothing_stays_when_a_run_is_killed(tmp_path: Path) -> None:
    """After kill -9 of the process that runs tests, no server of theirs is left, not even one in a session of its own."""
    server = f"server-of-{tmp_path.name}-{os.getpid()}"
    started = f"setsid bash -c 'exec -a {server} sleep 600' & exec sleep 600"
    with subprocess.Popen([ENCLOSED, "bash", "-c", started]) as run:
        until(lambda: runs(server))
        run.send_signal(signal.SIGKILL)
    until(lambda: not runs(server))


def test_what_runs_outside_while_a_test_runs_is_seen() -> None:
    """A test that needs quiet cores is not judged if another program used one in between, and neither before nor after."""
    judging = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "import pytest; from quiet_cores import QuietCores\n"
        "quiet = QuietCores(); print('begun', flush=True); sys.stdin.readline()\n"
        "try: quiet.judge(False, 'judged')\n"
        "except pytest.skip.Exception as skipped: print(skipped)\n"
    )
    outside = "import time\nwhile time.process_time() < 1: pass"
    command = [ENCLOSED, sys.executable, "-c", judging]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdin and run.stdout and run.stdout.readline() == "begun\n"
        subprocess.run([sys.executable, "-c", outside], check=True)
        said, _ = run.communicate("\n")
    assert said == "not judged: the machine is too busy\n"


def runs(name: str) -> bool:
    """Whether there is a process of this name."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes().startswith(name.encode() + b"\0"):
                return True
        except OSError:
            continue
    return False
