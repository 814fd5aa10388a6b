"""On the MPI of this machine: calibration completes, and says what one host cannot tell."""

from __future__ import annotations

import shutil
import subprocess
import tomllib

import pytest
import topolane
from clusters import Calibrate, needs

PLAN = ("--repetitions", 5, "--largest", 65536)
needs_mpi = needs("mpicc", "mpiexec", package="openmpi-bin, libopenmpi-dev")


def launcher(program: str = "{program}", options: str = "") -> str:
    """Open MPI starts more processes than cores only with an option."""
    version = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True).stdout
    allowed = f"--oversubscribe {options}" if "Open MPI" in version or "OpenRTE" in version else ""
    return f"mpiexec {allowed} -n {{ranks}} {program}"


@needs_mpi
def test_one_node_gives_the_parameters_of_its_inside_and_no_others(calibrate: Calibrate) -> None:
    result = calibrate("--nodes", 1, "--processes", 4, "--launch", launcher(), *PLAN)
    assert {"copy-bandwidth", "copy-latency"} <= set(result["node"])
    assert not {"nic-bandwidth", "flow-bandwidth", "latency", "penalty"} & set(result["node"])
    assert "between nodes" in result["not_measured"][0]
    assert "need two nodes" in result["not_measured"][0]
    out = calibrate.directory / "calibration"
    node = tomllib.loads((out / "machine.toml").read_text())["node"]
    assert set(node) == {"sockets", "cores-per-socket", *result["node"]}
    assert topolane.machine(out / "machine.toml").nodes == 1
    names = ["alltoall.svg", "machine.toml", "measurements.jsonl", "pairs.svg"]
    assert sorted(file.name for file in out.iterdir()) == names
    assert {(row["bytes"], row["sharers"]) for row in result["alltoall"]} == {
        (size, sharers) for size in (65536, 1048576) for sharers in (2, 3, 4)
    }


@needs_mpi
@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "--uts", "hostname", "x"], capture_output=True).returncode != 0,
    reason="needs the right to name hosts (unshare --uts)",
)
def test_two_host_names_are_two_nodes_and_tell_the_interface_too(calibrate: Calibrate) -> None:
    named = "hostname node$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} % 2)); exec {program}"
    template = launcher(f"unshare --uts sh -c '{named}'", "--mca btl tcp,self")
    result = calibrate("--processes", 2, "--launch", template, *PLAN)
    assert result["nodes"] == ["node0", "node1"]
    assert {"nic-bandwidth", "flow-bandwidth", "latency", "penalty", "copy-bandwidth"} <= set(result["node"])
    machine = topolane.machine(calibrate.directory / "calibration/machine.toml")
    assert [machine.node_name(node) for node in range(machine.nodes)] == ["node0", "node1"]
