"""Two libvirt daemons on one machine, each with folders of its own where libvirt wants fixed ones."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from pathlib import Path

from waiting import until

HIDDEN = ("/run/libvirt", "/var/lib/libvirt", "/var/cache/libvirt", "/etc/libvirt")
ACCOUNTS = {
    "/etc/passwd": "libvirt-qemu:x:64055:64055::/:/bin/false\n",
    "/etc/group": "libvirt-qemu:x:64055:\n",
}
"""What libvirt wants to know of, though it uses neither here."""
QEMU = """stdio_handler = "file"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = [ ]
"""


def missing() -> str | None:
    """What is not here, in words."""
    absent = [name for name in ("libvirtd", "unshare") if shutil.which(name) is None]
    return f"{', '.join(absent)} is not installed" if absent else None


class Daemon:
    """A libvirtd whose socket is in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.uri = f"qemu+unix:///system?socket={folder}/libvirt-sock"
        (folder / "qemu.conf").write_text(QEMU)
        (folder / "libvirtd.conf").write_text(
            f'unix_sock_dir = "{folder}"\nauth_unix_rw = "none"\nhost_uuid = "{uuid.uuid4()}"\n'
            f'log_outputs = "2:file:{folder}/log"\n'
        )
        self.start()

    def start(self) -> None:
        mounts = []
        for number, place in enumerate(HIDDEN):
            (self.folder / str(number)).mkdir(exist_ok=True)
            mounts += [f"mkdir -p {place}", f"mount --bind {self.folder}/{number} {place}"]
        for place, line in ACCOUNTS.items():
            made = self.folder / Path(place).name
            made.write_text(Path(place).read_text() + line)
            mounts.append(f"mount --bind {made} {place}")
        mounts += [f"cp {self.folder}/qemu.conf /etc/libvirt/qemu.conf"]
        script = " && ".join(
            [*mounts, f"exec libvirtd --config {self.folder}/libvirtd.conf -p {self.folder}/pid"]
        )
        with (self.folder / "out").open("w") as out:
            words = ["unshare", "--mount", "sh", "-c", script]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        until(lambda: self._answers() or self.process.poll() is not None, "libvirtd answers")
        assert self.process.poll() is None, (self.folder / "log").read_text()

    def _answers(self) -> bool:
        import libvirt

        try:
            libvirt.open(self.uri).close()
        except libvirt.libvirtError:
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Ends it and its guests, which outlive it."""
        import libvirt

        if self.process.poll() is not None:
            self.start()
        made = libvirt.open(self.uri)
        for domain in made.listAllDomains():
            domain.destroy()
        made.close()
        self.process.terminate()
        self.process.wait()
