"""A real MPI program under a live manager: it notices nothing, whatever happens to the manager."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="topolane-sites is not installed with what it needs")
from managed import MAIN, managing
from waiting import DEADLINE, until

HERE = Path(__file__).parent
RANKS, ROUNDS = 4, 600
SUM = sum(2 * ((rank + one) % 256) for one in range(ROUNDS) for rank in range(RANKS))
"""Every rank hears what each of its neighbours has in each round: rank + round, in a byte."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [name for name in ("mpicc.mpich", "mpiexec.mpich") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: on Debian, apt-get install mpich libmpich-dev")
    made = tmp_path_factory.mktemp("program") / "exchange"
    subprocess.run(["mpicc.mpich", "-O1", "-o", made, HERE / "exchange.c"], check=True)
    return made


def test_a_real_program_is_counted_exactly_while_its_manager_is_killed(program: Path, tmp_path: Path) -> None:
    """The manager is killed in the middle of the run and comes back a second later: the program prints what it would
    have printed, and its neighbours' messages are counted to the last one."""
    host = os.uname().nodename
    with managing(tmp_path, {host: "e1"}) as manager:
        run = [
            sys.executable,
            "-c",
            MAIN,
            "mpi",
            "run",
            "--manager",
            f"unix:{manager.programs}",
            "--seconds",
            "0.2",
        ]
        launch = ["mpiexec.mpich", "-n", str(RANKS), str(program), str(ROUNDS), "20000"]
        running = subprocess.Popen([*run, "--", *launch], stdout=subprocess.PIPE, text=True)
        until(lambda: any(one["bytes"] for one in manager.client.get("/programs")))
        manager.kill()
        time.sleep(1)
        manager.start()
        output, _ = running.communicate(timeout=DEADLINE)
        assert (running.returncode, output) == (0, f"sum {SUM}\n")

        def has_ended() -> bool:
            # The manager knows no program before a rank has come back to it.
            return [bool(one["ended"]) for one in manager.client.get("/programs", ended=True)] == [True]

        until(has_ended, "the program has ended")
        (one,) = manager.client.get("/programs", ended=True)
        assert (one["ranks"], one["dropped"], one["sites"]) == (RANKS, 0, {"east": RANKS})
        text = manager.client.text(f"/programs/{one['id']}/matrix", kind=0)
        entries = [line.split(",") for line in text.splitlines() if line[0].isdigit()]
        counted = {tuple(map(int, entry[:2])): entry[2:4] for entry in entries}
        assert counted == {
            (rank, (rank + step) % RANKS): [str(1000 * ROUNDS), str(ROUNDS)]
            for rank in range(RANKS)
            for step in (1, -1)
        }
        assert one["epoch"] == 1
