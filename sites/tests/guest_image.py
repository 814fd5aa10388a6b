"""Initramfs images of small guests, from what is installed here, and the kernel to start them with."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
KERNELS = (REPOSITORY / ".venv" / "guest-kernel" / "boot", Path("/boot"))
"""Where `make components` puts Debian's cloud kernel, and where its package puts it."""


def kernel() -> Path | None:
    """Debian's cloud kernel, if it is here."""
    named = os.environ.get("TOPOLANE_GUEST_KERNEL")
    found = [Path(named)] if named else [f for d in KERNELS for f in sorted(d.glob("vmlinuz-*-cloud-amd64"))]
    return found[-1] if found and found[-1].exists() else None


def missing(*programs: str) -> str | None:
    """What a guest lacks here, in words."""
    lacking = [name for name in ("qemu-system-x86_64", *programs) if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} is not installed"
    if kernel() is None:
        return "there is no Debian cloud kernel in .venv/guest-kernel or /boot"
    return None


def module(name: str) -> Path:
    """A module of that kernel."""
    found = kernel()
    assert found
    version = found.name.removeprefix("vmlinuz-")
    return next((found.parents[1] / "lib" / "modules" / version).rglob(f"{name}.ko*"))


def libraries(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries of programs, all the way down."""
    found: set[Path] = set()
    for program in programs:
        printed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        found |= {Path(path) for path in re.findall(r"(/\S+) \(0x", printed)}
    return found


def pack(target: Path, files: Mapping[str, Path | bytes], links: Mapping[str, str] = {}) -> Path:
    """Writes an initramfs: files by their place in it, programs stripped, and symbolic links."""
    entries: list[tuple[str, int, bytes]] = []
    for place, source in files.items():
        if isinstance(source, bytes):
            entries.append((place, stat.S_IFREG | (0o755 if source.startswith(b"#!") else 0o600), source))
        else:
            entries.append((place, stat.S_IFREG | 0o755, _stripped(source, target)))
    entries += [(place, stat.S_IFLNK | 0o777, to.encode()) for place, to in links.items()]
    folders = {str(parent) for place, _, _ in entries for parent in Path(place).parents} - {"."}
    folders |= {"dev", "proc", "sys", "tmp", "root"}
    with target.open("wb") as file:
        for number, (place, mode, content) in enumerate(
            [(place, stat.S_IFDIR | 0o755, b"") for place in sorted(folders)] + entries
        ):
            file.write(_entry(place, mode, content, number + 1))
        # A console before anything is mounted.
        file.write(_entry("dev/console", stat.S_IFCHR | 0o600, b"", 0, (5, 1)))
        file.write(_entry("TRAILER!!!", 0, b"", 0))
    return target


def tick_image(folder: Path) -> Path:
    """A guest that only counts."""
    source = Path(__file__).with_name("tick.c")
    subprocess.run(["cc", "-O1", "-static", "-o", folder / "tick", source], check=True)
    return pack(folder / "tick.initramfs", {"init": folder / "tick"})


def _stripped(source: Path, target: Path) -> bytes:
    """A file's content; of a program without what only a debugger reads, which is most of some."""
    content = source.read_bytes()
    if not content.startswith(b"\x7fELF") or source.suffix == ".ko":
        return content
    draft = target.with_suffix(".strip")
    subprocess.run(["strip", "--strip-unneeded", "-o", draft, source], check=True)
    content = draft.read_bytes()
    draft.unlink()
    return content


def _entry(place: str, mode: int, content: bytes, inode: int, device: tuple[int, int] = (0, 0)) -> bytes:
    """An entry of cpio's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    name = place.encode() + b"\0"
    numbers = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
