"""A small machine with control groups version 2 alone: QEMU boots Debian's kernel on this machine's files, which it
cannot change. Its init is systemd, with no units but those that are given."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import guest_image
from waiting import until

VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")
"""As Debian's qemu-system-common has it."""
SYSTEMD = Path("/lib/systemd/systemd")
MODULES = (
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "fuse",
    "virtiofs",
)
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /files
mount -t devtmpfs dev /dev
for module in {modules}; do insmod /lib/$module.ko; done
mount -t virtiofs -o ro files /files
mount -t tmpfs run /files/run
mount -t proc proc /files/proc
mount -t sysfs sys /files/sys
mount -t devtmpfs dev /files/dev
ip link set lo up
mkdir /files/run/tmp /files/run/units
cp /checks.service /files/run/units
chmod 644 /files/run/units/checks.service
export SYSTEMD_UNIT_PATH=/run/units
exec switch_root /files {systemd} --unit=checks.service --log-target=console
"""
ENDED = "the command ended with"
UNIT = """[Unit]
DefaultDependencies=no

[Service]
Type=oneshot
Environment=HOME=/run TMPDIR=/run/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/sh -c '{command}; echo "{ended} $$?"; systemctl poweroff -ff'
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
"""


def missing() -> str | None:
    """What such a machine lacks here, in words."""
    for program in (VIRTIOFSD, SYSTEMD):
        if not program.exists():
            return f"{program} is not installed"
    found = guest_image.missing("busybox")
    if (
        found is None
        and b"statically linked"
        not in subprocess.run(["file", "-L", shutil.which("busybox") or ""], capture_output=True).stdout
    ):
        return "busybox is not static (busybox-static)"
    return found


def run(folder: Path, command: str, seconds: float) -> tuple[int | None, str]:
    """Boots, runs a shell command as root in a unit of systemd, and shuts down. Returns its exit code, None without
    one, and what it printed."""
    modules = {name: guest_image.module(name) for name in MODULES}
    busybox = Path(shutil.which("busybox") or "busybox")
    init = INIT.format(modules=" ".join(modules), systemd=SYSTEMD).encode()
    unit = UNIT.format(command=command, ended=ENDED).encode()
    files = {f"lib/{name}.ko": file for name, file in modules.items()}
    image = guest_image.pack(
        folder / "initramfs", {"init": init, "checks.service": unit, "bin/busybox": busybox, **files}
    )
    socket = folder / "files.sock"
    shared = ["-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=always"]
    with (folder / "files.log").open("w") as log:
        server = subprocess.Popen([VIRTIOFSD, f"--socket-path={socket}", *shared], stdout=log, stderr=log)
    try:
        until(lambda: socket.exists() or server.poll() is not None, "virtiofsd listens")
        assert server.poll() is None, (folder / "files.log").read_text()
        machine = [
            "-M",
            "q35",
            "-accel",
            "tcg",
            "-cpu",
            "max",
            "-m",
            "1024",
            "-smp",
            "2",
            "-display",
            "none",
            "-no-reboot",
        ]
        memory = [
            "-object",
            "memory-backend-memfd,id=memory,size=1024M,share=on",
            "-numa",
            "node,memdev=memory",
        ]
        files_of = [
            "-chardev",
            f"socket,id=files,path={socket}",
            "-device",
            "vhost-user-fs-pci,chardev=files,tag=files",
        ]
        console = folder / "console"
        boot = ["-kernel", str(guest_image.kernel()), "-initrd", str(image), "-serial", f"file:{console}"]
        boot += ["-append", "console=ttyS0 quiet panic=-1 no_timer_check cgroup_no_v1=all"]
        try:
            subprocess.run(["qemu-system-x86_64", *machine, *memory, *files_of, *boot], timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, console.read_text(errors="replace")
        said = console.read_text(errors="replace")
    finally:
        server.kill()
        server.wait()
    printed, found, code = said.rpartition(ENDED)
    return (int(code.split()[0]), printed) if found else (None, said)
