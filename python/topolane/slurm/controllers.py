"""Finds the hosts of slurmctld, and compares this host's files with those that the active slurmctld uses.

A backup slurmctld reads its files only when it takes over, so a difference must be found earlier.
"""

from __future__ import annotations

import re
import socket
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from topolane import texts
from topolane._engine import InputError
from topolane.slurm import shadows
from topolane.slurm.inspection import SlurmInspection, slurm_conf_of
from topolane.slurm.plugin_machine import sum_of_files
from topolane.slurm.plugin_state import PluginJobs

HOST = re.compile(r"SlurmctldHost\[([0-9]+)\]")
MOST_BYTES = 256 << 20


def backups(look: SlurmInspection) -> list[str]:
    """The hosts of backup controllers, in the order of slurm.conf."""
    return hosts(look.configuration)[1:]


def differences(look: SlurmInspection, here: str | None = None) -> list[str]:
    """A sentence for each file of this host that differs from the file in use; none on a host that is no
    controller.

    here: the name of this host.
    """
    jobs = look.state.jobs if look.state else None
    name = _short(here or socket.gethostname())
    if jobs is None or jobs.host is None or name not in map(_short, hosts(look.configuration)):
        return []
    is_in_use = name == _short(jobs.host)
    found = []
    for path, same in _compared(look, jobs):
        if same is None:
            found.append(
                f"{path} does not exist or cannot be read: slurmctld on {jobs.host} uses such a file."
            )
        elif not same and is_in_use:
            found.append(f"{path} has changed since slurmctld read it: run `scontrol reconfigure`.")
        elif not same:
            found.append(
                f"{path} differs from the file that slurmctld on {jobs.host} uses: copy that one to this host, {name}."
            )
    return found


def _compared(look: SlurmInspection, jobs: PluginJobs) -> Iterator[tuple[str, bool | None]]:
    """Each file, and whether it equals the file in use; None if it cannot be read."""
    directory = slurm_conf_of(look.configuration).parent
    paths = {"conf": look.conf_file}
    if look.conf is not None and look.conf.engine is not None:
        paths["engine"] = look.conf.engine
    build = shadows.build(look.configuration)
    if build is not None:
        paths["plugin"] = build
    for what, path in paths.items():
        if what in jobs.checksums:
            yield str(path), _is(path, jobs.checksums[what])
    if jobs.machine is not None and jobs.machine_sum is not None:
        machine = [directory / name for name in jobs.machine.split(",", 1)]
        try:
            same = sum_of_files(machine) == jobs.machine_sum
        except InputError:
            same = None
        yield " or ".join(map(str, machine)), same


def _is(path: Path, checksum: int) -> bool | None:
    try:
        return zlib.crc32(texts.read_bytes(path, MOST_BYTES)) == checksum
    except InputError:
        return None


def hosts(configuration: Mapping[str, str]) -> list[str]:
    """The hosts of slurmctld in Slurm's settings: first the primary controller, then the backups."""
    found = {
        int(match[1]): host.partition("(")[0]
        for key, host in configuration.items()
        if (match := HOST.fullmatch(key))
    }
    return [host for _, host in sorted(found.items())]


def _short(host: str) -> str:
    return host.partition(".")[0]
