"""The image of a small guest with MPICH, an ssh server, and the programs it is given."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from guest_image import libraries, module, pack

HERE = Path(__file__).parent
MODULES = (
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio-rng",
)
PROGRAMS = {
    "bin/dropbear": Path("/usr/sbin/dropbear"),
    "bin/dbclient": Path("/usr/bin/dbclient"),
    "usr/bin/mpiexec": Path("/usr/bin/mpiexec.hydra"),
    "usr/bin/hydra_pmi_proxy": Path("/usr/bin/hydra_pmi_proxy"),
}
OWN = ("pairs", "compute")
"""Programs whose sources are next to this file."""
NEEDED = ("dropbear", "dbclient", "mpiexec.hydra", "mpicc.mpich", "strip", "dropbearkey")


def mpi_image(folder: Path, addresses: Mapping[str, str], libraries_too: Mapping[str, Path]) -> Path:
    """An initramfs with `pairs` and `compute`, the libraries that are named, and the guests' names and addresses.

    Writes the key that opens the guests to `folder/key`.
    """
    for program in OWN:
        source = HERE / f"{program}.c"
        subprocess.run(["mpicc.mpich", "-O1", "-o", folder / program, source], check=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "nap.so", HERE / "nap.c"], check=True)
    for key in ("key", "host_key"):
        (folder / key).unlink(missing_ok=True)
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", folder / key], check=True, capture_output=True)
    printed = subprocess.run(
        ["dropbearkey", "-y", "-f", folder / "key"], capture_output=True, text=True
    ).stdout
    public = next(line for line in printed.splitlines() if line.startswith("ssh-"))
    programs = PROGRAMS | {f"usr/bin/{program}": folder / program for program in OWN}
    programs["usr/lib/nap.so"] = folder / "nap.so"
    programs |= {f"usr/lib/{name}": file for name, file in libraries_too.items()}
    files: dict[str, Path | bytes] = {place: file for place, file in programs.items()}
    files |= {f"modules/{name}.ko": module(name) for name in MODULES}
    files |= {str(file).lstrip("/"): file.resolve() for file in libraries(programs.values())}
    files |= {
        "init": (HERE / "init").read_bytes(),
        "bin/busybox": Path("/bin/busybox"),
        "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n",
        "etc/group": b"root:x:0:\n",
        "etc/shells": b"/bin/sh\n",
        "etc/nsswitch.conf": b"passwd: files\nhosts: files\n",
        "etc/hosts": "".join(f"{a} {name}\n" for name, a in addresses.items()).encode(),
        "etc/dropbear/dropbear_ed25519_host_key": (folder / "host_key").read_bytes(),
        "root/.ssh/authorized_keys": public.encode() + b"\n",
        "root/.ssh/id_dropbear": (folder / "key").read_bytes(),
        "bin/ssh": b'#!/bin/sh\nexec dbclient -y -y -i /root/.ssh/id_dropbear "$@"\n',
    }
    return pack(folder / "mpi.initramfs", files, {"bin/sh": "busybox"})
