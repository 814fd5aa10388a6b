"""Finds the vCPU threads of a running guest: a libvirt domain, or a QEMU process.

Only these threads are the job. Stopping QEMU's other threads would also stop its monitor and its disks.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from topolane._engine import InputError

VCPU = re.compile(r"(CPU \d+|ALL CPUs)/\w+")
"""Their names with QEMU's option `-name ...,debug-threads=on`, which libvirt sets (accel/*/*-accel-ops*.c)."""


@dataclass(frozen=True)
class GangGuest:
    """A guest that runs on this machine."""

    name: str
    process: int
    """The QEMU process."""
    threads: tuple[int, ...]
    """The threads of its vCPUs, ascending; a single thread if QEMU emulates them in turns."""


def guest(named: str) -> GangGuest:
    """The guest by its name in libvirt, its QMP socket (with a `/`), or the number of its QEMU process.

    libvirt is the one at LIBVIRT_DEFAULT_URI. Raises InputError.
    """
    if "/" in named:
        return _of_socket(named)
    return _of_process(named, int(named)) if re.fullmatch(r"[0-9]{1,9}", named) else _of_libvirt(named)


def _of_process(name: str, process: int) -> GangGuest:
    threads = []
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            if VCPU.fullmatch((task / "comm").read_text().rstrip("\n")):
                threads.append(int(task.name))
    except OSError as error:
        raise InputError(f"guest {name}: process {process}: {error.strerror}") from error
    if not threads:
        raise InputError(
            f"guest {name}: process {process} has no thread that is called a vCPU: it is no QEMU with "
            "debug-threads=on (name its QMP socket)"
        )
    return GangGuest(name, process, tuple(sorted(threads)))


def _of_libvirt(name: str) -> GangGuest:
    try:
        import libvirt
        from topolane.cluster.clients import domains
    except ModuleNotFoundError as error:
        raise InputError(
            f"guest {name}: libvirt needs the Python module {error.name}: install the extra libvirt"
        ) from error
    try:
        with domains.opened(None) as made:
            found = domains.domain(made, name)
            if found is None:
                raise InputError(f"guest {name}: {made.getURI()} knows none of that name")
            if not found.isActive():
                raise InputError(f"guest {name} is shut off")
            uuid = found.UUIDString()
    except libvirt.libvirtError as error:
        raise InputError(f"guest {name}: libvirt: {error}") from error
    process = _process_with("-uuid", uuid)
    if process is None:
        raise InputError(f"guest {name} is no QEMU process on this machine")
    return _of_process(name, process)


def _process_with(option: str, value: str) -> int | None:
    """The process that was started with this option and value."""
    wanted = f"\0{option}\0{value}\0".encode()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted in file.read_bytes():
                return int(file.parent.name)
        except OSError:
            continue  # it has ended
    return None


def _of_socket(path: str) -> GangGuest:
    try:
        from topolane.cluster.clients.qmp import SILENT
    except ModuleNotFoundError as error:
        raise InputError(
            f"guest {path}: QMP needs the Python module {error.name}: install what topolane-gang requires"
        ) from error
    try:
        threads = asyncio.run(_threads(path))
    except TimeoutError as error:
        raise InputError(
            f"guest {path}: no QMP monitor answers there; a QMP socket serves one client at a time"
        ) from error
    except (*SILENT, KeyError, TypeError, ValueError) as error:
        raise InputError(f"guest {path}: no QMP is heard there: {' '.join(str(error).split())}") from error
    return GangGuest(path, _process_of(path, threads), tuple(threads))


async def _threads(path: str) -> list[int]:
    from topolane.cluster.clients.qmp import ask, monitor

    async with monitor(path) as client:
        return sorted({int(core["thread-id"]) for core in await ask(client, "query-cpus-fast")})


def _process_of(path: str, threads: list[int]) -> int:
    """The process of these threads. QEMU reports their numbers in its own namespace, which may be a
    container's.
    """
    processes = set()
    for thread in threads:
        try:
            status = Path(f"/proc/{thread}/status").read_text()
        except OSError as error:
            raise InputError(
                f"guest {path}: its thread {thread} is not one of this machine's, or of another process namespace"
            ) from error
        processes.update(re.findall(r"^Tgid:\s*(\d+)$", status, re.MULTILINE))
    if len(processes) != 1:
        raise InputError(
            f"guest {path}: its threads {threads} are not those of one process here: it is in another process namespace"
        )
    return int(processes.pop())
