"""A simulated InfiniBand subnet with the real subnet manager: ibsim, opensm, infiniband-diags."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import DEADLINE, until

TOOLS = ("ibsim", "opensm", "ibnetdiscover", "ibtracert", "dump_fts", "timeout")
PLACES = ("lib*/umad2sim", "lib/*/umad2sim")
SHIMS = [shim for place in PLACES for shim in Path("/usr").glob(f"{place}/libumad2sim.so")]


def missing() -> str:
    """What a simulated subnet lacks here; empty if nothing."""
    if SHIMS and all(map(shutil.which, TOOLS)):
        return ""
    return "needs ibsim, opensm and ibnetdiscover: packages ibsim-utils, opensm, infiniband-diags"


needs_a_subnet = pytest.mark.skipif(bool(missing()), reason=missing())


def topolane(*arguments: str | Path) -> str:
    command = [Path(sys.executable).parent / "topolane", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE).stdout


def ask(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    # Clients wait for a simulator that does not answer, and then ignore SIGTERM.
    return subprocess.run(
        ["timeout", "-k", "2", "30", *command],
        env=environment,
        # What is killed leaves the files of its simulated adapter behind where it ran.
        cwd=environment["OSM_TMP_DIR"],
        capture_output=True,
        text=True,
    )


def sweep(environment: dict[str, str], engine: str, *options: str) -> Path:
    """Lets the subnet manager install tables by a routing engine; the dump it writes of them."""
    out = Path(environment["OSM_TMP_DIR"])
    command = ["opensm", "-o", "-R", engine, "-f", str(out / "opensm.log"), "-D", "0x43", *options]
    subprocess.run(
        ["timeout", "-k", "2", "60", *command],
        env=environment,
        cwd=out,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return out / "opensm-lfts.dump"


@contextlib.contextmanager
def running(machine: str | Path, directory: Path) -> Iterator[dict[str, str]]:
    """Runs a machine as a subnet; yields the environment in which the InfiniBand tools see it."""
    net = directory / "machine.net"
    net.write_text(topolane("machine", "convert", machine, "--to", "ibsim-net"))
    environment = {
        **os.environ,
        "IBSIM_SOCKNAME": f"topolane-{os.getpid()}-{directory.name}",
        "OSM_TMP_DIR": str(directory),
        "OSM_CACHE_DIR": str(directory),
    }
    # -N counts hosts and switches.
    command = ["ibsim", "-s", "-n", "-N", "500", "-S", "150", "-P", "3000", str(net)]
    with (directory / "ibsim.log").open("w") as log:
        simulator = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        client = {**environment, "LD_PRELOAD": str(SHIMS[0])}
        until(
            lambda: simulator.poll() is not None or not ask(client, "ibnetdiscover").returncode,
            "ibsim answers",
        )
        assert simulator.poll() is None, (directory / "ibsim.log").read_text()
        yield client
    finally:
        simulator.kill()
        simulator.wait()
