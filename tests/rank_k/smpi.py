"""SimGrid's SMPI: real MPI programs on simulated clusters."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

from waiting import DEADLINE

HERE = Path(__file__).parent
MISSING = "" if shutil.which("smpicc") and shutil.which("smpirun") else "smpicc and smpirun are not there"

OPTIONS = [
    "--cfg=smpi/host-speed:1Gf",
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/coll-selector:mpich",
    "--cfg=smpi/lat-factor:0:1",
    "--cfg=smpi/bw-factor:0:1",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:0",
    "--log=root.thresh:critical",
]


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Two switches of eight nodes with eight cores; bytes per second."""

    name: str
    interface: float
    copy: float
    trunk: float
    """Of the cable between the switches."""

    def platform(self) -> str:
        """As SimGrid reads it: links of nodes shared by their processes, copies over a loopback."""
        leaves = "".join(
            f'<cluster id="leaf{leaf}" prefix="n" suffix="" radical="{8 * leaf}-{8 * leaf + 7}" speed="1Gf" '
            f'core="8" bw="{self.interface}Bps" lat="1us" sharing_policy="SPLITDUPLEX" '
            f'loopback_bw="{self.copy}Bps" loopback_lat="500ns"/>'
            for leaf in range(2)
        )
        return (
            "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
            f'<platform version="4.1"><zone id="world" routing="Full">{leaves}'
            f'<link id="trunk" bandwidth="{self.trunk}Bps" latency="1us" sharing_policy="SPLITDUPLEX"/>'
            '<zoneRoute src="leaf0" dst="leaf1" gw_src="nleaf0_router" gw_dst="nleaf1_router">'
            '<link_ctn id="trunk" direction="UP"/></zoneRoute></zone></platform>'
        )

    def machine(self) -> str:
        """As Topolane reads it."""
        return f"""name = "{self.name}"
[node]
sockets = 1
cores-per-socket = 8
nic-bandwidth = {self.interface}
latency = 2e-6
copy-bandwidth = {self.copy}
copy-latency = 5e-7
memory-bandwidth = 1e15
[[site]]
name = "cluster"
children = [8, 2]
bandwidth = [{self.interface}, {self.trunk}]
"""


def compile(program: str, directory: Path) -> Path:
    """A program of this directory, compiled."""
    made = directory / program
    subprocess.run(["smpicc", "-O2", "-o", made, HERE / f"{program}.c"], check=True, capture_output=True)
    return made


def run(
    program: Path, cluster: Cluster, k: int, processes: int, arguments: list[str], *options: str
) -> float:
    """The seconds that a program prints, k processes a node."""
    platform, hosts = program.parent / f"{cluster.name}.xml", program.parent / f"hosts-{processes}-{k}"
    platform.write_text(cluster.platform())
    hosts.write_text("".join(f"n{rank // k}\n" for rank in range(processes)))
    command = ["smpirun", "-np", str(processes), "-platform", platform, "-hostfile", hosts]
    done = subprocess.run(
        [*command, *OPTIONS, *options, program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    return float(done.stdout.split()[-1])
