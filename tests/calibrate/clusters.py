"""Clusters with known parameters, simulated by SimGrid; MPI programs run on them unmodified."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE

SCRIPT = Path(sys.executable).parent / "topolane"

OPTIONS = (
    "--cfg=smpi/simulate-computation:no --cfg=smpi/lat-factor:0:1 --cfg=smpi/bw-factor:0:1 "
    "--cfg=network/crosstraffic:0 --log=root.thresh:warning"
)


@dataclass(frozen=True)
class Cluster:
    """Nodes on one switch. A flow has no more than `flow` and shares `link`; a copy has no more than `copy`
    and shares `memory` with the others of its node. Bytes per second and seconds.
    """

    link: float
    flow: float
    latency: float
    copy: float
    memory: float
    copy_latency: float
    penalties: tuple[float, float, float] | None = None
    """Incoming, outgoing, crowded of SimGrid's InfiniBand model."""

    def options(self) -> str:
        if self.penalties is None:
            return OPTIONS
        factors = ";".join(map(str, self.penalties))
        return f"{OPTIONS} --cfg=network/model:IB '--cfg=smpi/IB-penalty-factors:{factors}'"

    def write(self, directory: Path, nodes: int, processes: int) -> str:
        """Writes the platform and its host file; gives the launcher."""
        parts = [self._links(node) for node in range(nodes)]
        parts += [self._route(a, b) for a in range(nodes) for b in range(a, nodes)]
        body = "\n".join(parts)
        (directory / "platform.xml").write_text(
            '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            f'<platform version="4.1"><zone id="all" routing="Full">\n'
            f'<link id="flow" bandwidth="{self.flow}Bps" latency="0s" sharing_policy="FATPIPE"/>\n'
            f"{body}\n</zone></platform>\n"
        )
        hosts = "".join(f"n{node}\n" * processes for node in range(nodes))
        (directory / "hosts").write_text(hosts)
        return f"smpirun -np {{ranks}} -platform platform.xml -hostfile hosts {self.options()} {{program}}"

    def _links(self, node: int) -> str:
        return (
            f'<host id="n{node}" speed="1Gf" core="64"/>'
            f'<link id="l{node}" bandwidth="{self.link}Bps" latency="{self.latency / 2}s" '
            'sharing_policy="SPLITDUPLEX"/>'
            f'<link id="m{node}" bandwidth="{self.memory}Bps" latency="0s"/>'
            f'<link id="c{node}" bandwidth="{self.copy}Bps" latency="{self.copy_latency}s" '
            'sharing_policy="FATPIPE"/>'
        )

    def _route(self, a: int, b: int) -> str:
        between = (
            f'<link_ctn id="c{a}"/><link_ctn id="m{a}"/>'
            if a == b
            else f'<link_ctn id="l{a}" direction="UP"/><link_ctn id="flow"/><link_ctn id="l{b}" direction="DOWN"/>'
        )
        return f'<route src="n{a}" dst="n{b}">{between}</route>'


QDR = Cluster(3.2e9, 2.9e9, 1.3e-6, 4e9, 6e9, 4e-7, (0.965, 0.925, 1.35))


class Calibrate:
    """`topolane calibrate` in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run(
            [SCRIPT, "calibrate", *map(str, arguments)],
            cwd=self.directory,
            env=os.environ | root,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def __call__(self, *arguments: object) -> dict[str, Any]:
        """What a run that works prints as JSON."""
        done = self.run(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def refused(self, *arguments: object) -> str:
        """Bad input: one sentence, exit code 2, and nothing written."""
        before = sorted(self.directory.rglob("*"))
        done = self.run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), done
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith("topolane: ")
        assert sorted(self.directory.rglob("*")) == before
        return sentence


def needs(*tools: str, package: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(tools)}: package {package}")
