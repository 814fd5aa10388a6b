"""The other simulators: programs next to this file, compiled if Debian's packages are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent

NS3_MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
# For each program: the Debian package, and what of it must be installed.
SIMGRID = ("libsimgrid-dev", ("g++", "smpirun", "smpicc"))
NS3 = ("libns3-dev and libgsl-dev", ("g++", "pkg-config"))


class Missing(RuntimeError):
    """A component is not installed; the message names its package."""


def _need(package: str, tools: tuple[str, ...]) -> None:
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        raise Missing(f"{', '.join(absent)} not found: needs package {package} (and g++)")


def _compile(command: list[str | Path], output: Path) -> Path:
    done = subprocess.run([*command, "-o", output], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{output.name} does not compile:\n{done.stderr}")
    return output


class Programs:
    """The compiled programs. Each is compiled in `folder` when it is first needed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def simgrid_rates(self) -> Path:
        """The program that computes rates of flows with SimGrid."""
        return self._made("simgrid_rates", self._simgrid, "simgrid_rates.cpp", ["g++", "-std=c++17", "-O2"])

    def simgrid_torus(self) -> Path:
        """The program that counts the links of SimGrid's torus."""
        return self._made("simgrid_torus", self._simgrid, "simgrid_torus.cpp", ["g++", "-std=c++17", "-O2"])

    def smpi_platform(self) -> Path:
        """The platform, as a library that smpirun loads."""
        flags = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC"]
        return self._made("smpi_platform.so", self._simgrid, "smpi_platform.cpp", flags)

    def play(self) -> Path:
        """The MPI program that replays traffic, for SMPI."""
        return self._made("play", self._simgrid, "play.c", ["smpicc", "-O2"])

    def ns3_bulk(self) -> Path:
        """The program with TCP flows at packet level, for ns-3."""
        return self._made("ns3_bulk", self._ns3, "ns3_bulk.cpp", ["g++", "-std=c++17", "-O2"])

    def _made(self, name: str, flags: object, source: str, command: list[str]) -> Path:
        output = self.folder / name
        made_from = [HERE / source, HERE / "platform.hpp"]
        if output.exists() and output.stat().st_mtime > max(path.stat().st_mtime for path in made_from):
            return output
        assert callable(flags)
        return _compile([*command, HERE / source, *flags()], output)

    @staticmethod
    def _simgrid() -> list[str]:
        _need(*SIMGRID)
        return ["-lsimgrid"]

    @staticmethod
    def _ns3() -> list[str]:
        _need(*NS3)
        modules = [f"ns3-{module}" for module in NS3_MODULES]
        asked = ["pkg-config", "--libs", *modules]
        found = subprocess.run(asked, capture_output=True, text=True)
        if found.returncode != 0:
            raise Missing(f"pkg-config knows no ns-3: needs package {NS3[0]}")
        return found.stdout.split()


def run(command: list[str | Path], text: str | None, timeout: float, **environment: str) -> str:
    """The output of a program. Raises RuntimeError with its error message if it fails."""
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed ({done.returncode}):\n{done.stderr[-2000:]}")
    return done.stdout
