"""A guest with two cores that are always busy, for QEMU or libvirt; it needs no kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from topolane_sites.model import Guest
from topolane_sites.qemu import QemuFolder, QemuMachine

CORES = 2


def missing() -> str | None:
    """What is not here, in words."""
    absent = [name for name in ("qemu-system-x86_64", "cc") if shutil.which(name) is None]
    return f"{', '.join(absent)} is not installed" if absent else None


def program(folder: Path) -> Path:
    """What such a guest boots."""
    made = folder / "spin"
    flags = ["-m32", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none,-Ttext=0x100000"]
    subprocess.run(["cc", *flags, "-o", made, Path(__file__).with_name("spin.S")], check=True)
    return made


def start(folder: Path, name: str = "busy") -> QemuFolder:
    """Starts a guest in that folder, as plain QEMU."""
    arguments = ["-M", "pc", "-accel", "tcg,tb-size=16", "-m", "16", "-smp", str(CORES), "-display", "none"]
    made = QemuFolder(folder)
    made.start(QemuMachine(name, (*arguments, "-kernel", str(program(folder)))))
    return made


def domain(folder: Path, name: str) -> str:
    """The XML of such a guest, for libvirt."""
    from topolane_sites.clusters import Boot
    from topolane_sites.domains import xml

    return xml(Guest(name, "c", CORES, 16 << 20, "here"), Boot(str(program(folder))), "qemu")
