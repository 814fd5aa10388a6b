"""A machine under Debian's Xen, emulated by QEMU without KVM: dom0 has this machine's files and runs commands."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

NATIVE = Path(__file__).parent / "native" / "xen"
VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")
"""As Debian's qemu-system-common has it."""
BOOT = 900.0
"""Seconds until dom0 is ready: it takes half a minute of two free cores."""
CPU = "Westmere"
"""Without AVX, of which Xen cannot save the state when emulated: `max` crashes dom0."""
LOOK = 10.0
"""Seconds between looks whether Xen has panicked, while nothing comes."""
PANIC = "(XEN) Panic on CPU"
STALL = re.compile(r"softirq=(\d+/\d+) fqs=")
"""What dom0's kernel says every minute of a core that does nothing, with the number of its interrupts."""
STALLS = 3
"""Reports in a row with the same number after which dom0 hangs: Xen no longer runs one of its cores."""
ENDED = "-- ended with "
READY = "dom0 is ready"


class NoXenMachine(Exception):
    """There can be no such machine here: why."""


class Failed(Exception):
    """A command of dom0 failed, or the machine did: what was said."""


class Panicked(Failed):
    """Xen itself has ended, or no longer runs dom0."""


def components() -> Path:
    """Where `make components` puts Xen, its tools and dom0's kernel."""
    return Path(os.environ.get("TOPOLANE_XEN") or Path(sys.prefix) / "xen")


def guest_kernel() -> Path | None:
    """Debian's cloud kernel, which domains boot."""
    found = sorted((Path(sys.prefix) / "guest-kernel" / "boot").glob("vmlinuz-*-cloud-amd64"))
    return found[-1] if found else None


def search_path() -> str:
    """Where Python finds all that it can import here, for PYTHONPATH."""
    return os.pathsep.join(str(Path(path or ".").absolute()) for path in sys.path)


def python() -> str:
    """This interpreter in dom0, with the same modules: the beginning of a line of shell."""
    return f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={search_path()} {sys.executable}"


def missing() -> str | None:
    """What such a machine lacks here, in words."""
    if os.geteuid() != 0:
        return "only root can share this machine's files with it"
    for program in ("qemu-system-x86_64", "busybox", "gcc", "setpriv"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not VIRTIOFSD.exists():
        return f"{VIRTIOFSD} is not installed"
    if not (components() / "xen").exists():
        return f"there is no Xen in {components()}: run make test in a clone, on Debian bookworm as root"
    if guest_kernel() is None:
        return f"there is no kernel for domains in {Path(sys.prefix) / 'guest-kernel'}"
    return None


@dataclasses.dataclass(frozen=True)
class Cores:
    """Two sockets of `each` emulated cores: dom0 has the first, the domains under test the second."""

    each: int
    counted: bool = False
    """Whether time is counted in instructions: the cores then take turns in one thread."""

    @property
    def of_domains(self) -> range:
        """The numbers of the second socket's cores."""
        return range(self.each, 2 * self.each)

    def words(self) -> list[str]:
        """For QEMU."""
        clock = "tcg,thread=single -icount shift=2,sleep=off" if self.counted else "tcg,thread=multi"
        return ["-smp", f"{2 * self.each},sockets=2,cores={self.each}", "-accel", *clock.split()]


class XenMachine:
    """A running machine, for `with`."""

    def __init__(self, folder: Path, cores: Cores, boot: float = BOOT) -> None:
        """Boots until dom0 is ready. Raises NoXenMachine, or Failed with the console."""
        if reason := missing():
            raise NoXenMachine(reason)
        self.folder, self.cores = folder, cores
        image = initramfs(
            folder, "dom0", {"modules": components() / "modules", "tools": components() / "tools"}
        )
        self.programs = [
            self.start([VIRTIOFSD, f"--socket-path={folder / 'files.sock'}", *SHARED], "files.log")
        ]
        try:
            self.wait_for(folder / "files.sock", 60.0)
            self.programs.append(self.start(self.words(image), "qemu.log"))
            self.commands = self.connected(folder / "commands", 60.0)
            self.said(READY, boot)
        except BaseException:  # there is no object yet by which others could end it
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def words(self, image: Path) -> list[str | Path]:
        """QEMU's command."""
        memory = "2560M"
        xen = "console=com1 com1=115200 dom0_mem=1024M dom0_max_vcpus=2 dom0_vcpus_pin spec-ctrl=no loglvl=warning"
        return [
            *("qemu-system-x86_64", "-M", "q35", "-cpu", CPU, "-m", memory, "-display", "none", "-no-reboot"),
            *self.cores.words(),
            *(
                "-object",
                f"memory-backend-memfd,id=memory,size={memory},share=on",
                "-numa",
                "node,memdev=memory",
            ),
            *("-chardev", f"socket,id=files,path={self.folder / 'files.sock'}"),
            *("-device", "vhost-user-fs-pci,chardev=files,tag=files"),
            *("-serial", f"file:{self.folder / 'console'}"),
            *("-serial", f"unix:{self.folder / 'commands'},server=on,wait=off"),
            *("-kernel", components() / "xen", "-append", xen),
            *("-initrd", f"{components() / 'kernel'} console=hvc0 quiet panic=-1,{image}"),
        ]

    def start(self, words: Sequence[str | Path], log: str) -> subprocess.Popen[bytes]:
        """Starts a program of the machine. It ends with the thread that starts it, however that ends."""
        bound = ["setpriv", "--pdeathsig", "KILL", *words]
        with (self.folder / log).open("w") as file:
            return subprocess.Popen(bound, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def wait_for(self, path: Path, seconds: float) -> None:
        """Until a program has made its socket."""
        until = time.monotonic() + seconds
        while not path.exists():
            if self.programs[-1].poll() is not None or time.monotonic() > until:
                raise Failed(f"{path} has not come: {self.last_words()}")
            time.sleep(0.05)

    def connected(self, path: Path, seconds: float) -> socket.socket:
        """To a socket that QEMU listens on, soon after it has made it."""
        self.wait_for(path, seconds)
        until = time.monotonic() + seconds
        while True:
            made = socket.socket(socket.AF_UNIX)
            try:
                made.connect(str(path))
                return made
            except ConnectionRefusedError:
                made.close()
                if time.monotonic() > until:
                    raise Failed(f"nothing listens on {path}: {self.last_words()}") from None
            time.sleep(0.05)

    def run(self, command: str, seconds: float = 600.0) -> str:
        """What a line of shell printed in dom0, as root. Raises Failed where it failed or took longer."""
        code, printed = self.tried(command, seconds)
        if code:
            raise Failed(f"{command}: ended with {code}: {printed}")
        return printed

    def tried(self, command: str, seconds: float = 600.0) -> tuple[int, str]:
        """The exit code of a line of shell in dom0, and what it printed."""
        try:
            self.commands.sendall(command.encode() + b"\n")
        except OSError as error:
            raise self.failure(f"the machine has ended ({error}): ") from None
        printed, _, code = self.said(ENDED, seconds).rpartition(ENDED)
        return int(code), printed

    def said(self, word: str, seconds: float) -> str:
        """All that comes until a whole line that begins with a word."""
        until = time.monotonic() + seconds
        got = b""
        while not (got.endswith(b"\n") and got.splitlines()[-1].startswith(word.encode())):
            self.commands.settimeout(min(max(until - time.monotonic(), 0.1), LOOK))
            try:
                more = self.commands.recv(1 << 16)
            except TimeoutError:
                if self.is_lost() or time.monotonic() > until:
                    raise self.failure(
                        f"no answer in {seconds:g} s: {got.decode(errors='replace')}"
                    ) from None
                continue
            except OSError as error:
                raise self.failure(f"the machine has ended ({error}): ") from None
            if not more:
                raise self.failure("the machine has ended: ")
            got += more
        return got.decode(errors="replace")

    def is_lost(self) -> str | None:
        """What Xen has done that no command comes back from: `panicked` or `hangs`."""
        console = (self.folder / "console").read_text(errors="replace")
        if PANIC in console:
            return "panicked"
        last = STALL.findall(console)[-STALLS:]
        return "hangs" if len(last) == STALLS and len(set(last)) == 1 else None

    def failure(self, what: str) -> Failed:
        """What to raise, with the ends of the logs."""
        if lost := self.is_lost():
            return Panicked(f"Xen {lost}, try again: {self.last_words()}")
        return Failed(what + self.last_words())

    def last_words(self) -> str:
        """The ends of the logs."""
        logs = [self.folder / name for name in ("files.log", "qemu.log", "console")]
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs if log.exists())

    def end(self) -> None:
        """Ends its programs."""
        for program in reversed(self.programs):
            program.kill()
            program.wait()


SHARED = ("-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=always")


def initramfs(folder: Path, name: str, more: dict[str, Path]) -> Path:
    """An initramfs: busybox, the first program of this name, and files or folders by their place."""
    root = folder / f"{name}-root"
    (root / "bin").mkdir(parents=True)
    (root / "dev").mkdir()
    first = "init" if name == "dom0" else name
    shutil.copy(NATIVE / first, root / "init")
    (root / "init").chmod(0o755)
    if name == "dom0":
        shutil.copy(NATIVE / "dom0", root)
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin" / "busybox")
    for place, source in more.items():
        if source.is_dir():
            shutil.copytree(source, root / place, symlinks=True)
        else:
            shutil.copy(source, root / place)
    image = folder / f"{name}.initramfs"
    listed = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
    with image.open("wb") as file:
        subprocess.run(
            ["busybox", "cpio", "-o", "-H", "newc"], cwd=root, input=listed, stdout=file, check=True
        )
    return image
