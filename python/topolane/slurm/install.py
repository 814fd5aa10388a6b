"""Installs the driver in a Slurm: writes the stanza in job_submit.lua and checks that slurmctld runs it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import tempfile
import time
from pathlib import Path

from topolane._engine import InputError
from topolane.live.clients.scontrol import configuration, scontrol
from topolane.slurm.config import Config
from topolane.slurm.scontrol import hook_answer
from topolane.slurm.stanza import BEGIN, END, answer, insert_stanza, remove_stanza, stanza

NOTHING = b"""\
-- topolane: nothing is left of it here, but slurmctld does not start without these functions as long as
-- slurm.conf has JobSubmitPlugins=lua.
function slurm_job_submit(job, partitions, uid) return slurm.SUCCESS end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
"""
"""Replaces a file that contained only the stanza."""


@dataclasses.dataclass(frozen=True)
class Controller:
    """The settings of slurmctld."""

    slurm_conf: Path
    plugins: tuple[str, ...]
    """JobSubmitPlugins."""
    user: int
    """The user id of SlurmUser."""
    partitions: tuple[str, ...]

    @property
    def job_submit(self) -> Path:
        """The job_submit.lua that it reads."""
        return self.slurm_conf.parent / "job_submit.lua"

    @property
    def runs_lua(self) -> bool:
        """Whether it reads that file."""
        return "lua" in self.plugins


def controller() -> Controller:
    """Reads the settings of slurmctld with scontrol. Raises InputError if it does not answer."""
    said = configuration()
    user = re.search(r"\((\d+)\)", said.get("SlurmUser", ""))
    plugins = said.get("JobSubmitPlugins", "(null)").split(",")
    return Controller(
        slurm_conf=Path(said.get("SLURM_CONF") or os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf"),
        plugins=tuple(name for name in plugins if name and name != "(null)"),
        user=int(user[1]) if user else 0,
        partitions=tuple(
            re.findall(r"^PartitionName=(\S+)", scontrol("-o", "show", "partition"), re.MULTILINE)
        ),
    )


@dataclasses.dataclass(frozen=True)
class Installation:
    """What to write into which file, and what follows from it."""

    slurm: Controller
    partitions: tuple[str, ...]
    path: Path
    own: bytes
    """The stanza."""
    old: bytes | None
    """The present content of the file; None if it does not exist."""
    new: bytes

    @property
    def is_read(self) -> bool:
        """Whether slurmctld reads this file as it is configured now."""
        return self.slurm.runs_lua and self.path == self.slurm.job_submit

    def write(self) -> None:
        """Writes the file and makes slurmctld read it. Raises InputError with the old file in place."""
        if self.new != self.old:
            write(self.path, self.new)
        if not self.is_read:
            return
        said = hook_answer()
        if answer(self.own) in said:
            return
        if self.old is None:
            self.path.unlink()
        elif self.new != self.old:
            write(self.path, self.old)
        raise InputError(
            f"{self.path}: slurmctld does not take the stanza, and the file is as it was; its log says why "
            f"(sbatch said: {' '.join(said.split()) or 'nothing'})"
        )

    def sentences(self) -> list[str]:
        """Sentences that say what was done, what it does and what is left to do."""
        names = ", ".join(self.partitions)
        done = "has the stanza already" if self.new == self.old else "now has the stanza"
        then = "A" if self.is_read else "Once slurmctld runs it, a"
        told = [
            f"{self.path} {done} for {names}, from `{BEGIN.decode()}` to `{END.decode().strip()}`.",
            f"{then} job submitted to {names} waits, held, until `topolane slurm run` gives it its nodes.",
        ]
        before = b"" if self.old is None else remove_stanza(self.old, str(self.path))
        if before not in (b"", NOTHING):
            told.append(
                "The functions that were in the file are called first, and a refusal of theirs stands."
            )
        if self.path != self.slurm.job_submit:
            told.append(
                f"slurmctld reads {self.slurm.job_submit}, not this file: call the stanza from there."
            )
        elif self.slurm.runs_lua:
            told.append("slurmctld has read it and answered.")
        if not self.slurm.runs_lua:
            line = ",".join((*self.slurm.plugins, "lua"))
            told.append(
                f"Left to do: {self.slurm.slurm_conf} needs the line\n    JobSubmitPlugins={line}\n"
                "and slurmctld must be restarted; until then nothing is held. Then call this again: it asks "
                "slurmctld whether it runs the stanza."
            )
        return told


def installation(config: Config, job_submit: str | None = None) -> Installation:
    """What `topolane slurm install` would write. This changes nothing.

    job_submit: the file, by default the one that slurmctld reads. Raises InputError.

    """
    slurm = controller()
    for name in config.partitions:
        if name not in slurm.partitions:
            raise InputError(f"Slurm has no partition {name}; there are {', '.join(slurm.partitions)}")
    path = Path(job_submit).absolute() if job_submit else slurm.job_submit
    old = read(path)
    before = b"" if old is None else remove_stanza(old, str(path))
    rest = b"" if before == NOTHING else before
    own = stanza(config.partitions, {0, slurm.user}, rest)
    new = insert_stanza(rest, own, str(path))
    return Installation(slurm, config.partitions, path, own, old, new)


def take_out(slurm: Controller, job_submit: str | None, *, dry_run: bool) -> str:
    """Removes the stanza from job_submit.lua and makes slurmctld read the file again. Returns sentences on
    what was done.

    Raises InputError with the file unchanged.
    """
    path = Path(job_submit).absolute() if job_submit else slurm.job_submit
    old = read(path)
    if old is None:
        return f"{path} is not there."
    rest = remove_stanza(old, str(path))
    is_read = slurm.runs_lua and path == slurm.job_submit
    if rest == old and (old != NOTHING or is_read):
        return f"{path} has no stanza of topolane."
    if rest in (b"", NOTHING) and not is_read:
        if not dry_run:
            path.unlink()
        return f"{path} is removed."
    if not dry_run:
        write(path, rest or NOTHING)
        if is_read and "topolane: the jobs of" in hook_answer():
            raise InputError(
                f"{path} is without the stanza, and slurmctld goes on with it: restart slurmctld"
            )
    if rest:
        return f"{path} is what it was before the stanza."
    return (
        f"{path} holds no jobs any more. It was made for the stanza, but slurmctld does not start without it: "
        f"take JobSubmitPlugins={','.join(slurm.plugins)} out of {slurm.slurm_conf}, restart slurmctld, and "
        "call this again to have the file removed."
    )


def read(path: Path) -> bytes | None:
    """The content of a file; None if it does not exist. Raises InputError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def write(path: Path, text: bytes) -> None:
    """Replaces a file atomically; the owner and mode stay. Raises InputError."""
    target = path.resolve()
    try:
        was = target.stat() if target.exists() else None
        descriptor, name = tempfile.mkstemp(prefix=".job_submit.", dir=target.parent)
        draft = Path(name)
        try:
            with open(descriptor, "wb") as file:
                file.write(text)
                os.fchmod(file.fileno(), was.st_mode & 0o7777 if was else 0o644)
                if was:
                    os.fchown(file.fileno(), was.st_uid, was.st_gid)
                file.flush()
                os.fsync(file.fileno())
            # slurmctld reads a file again if its time, in whole seconds, is later than at the last reading.
            moment = max(int(time.time()), int(was.st_mtime) + 1 if was else 0)
            os.utime(draft, (moment, moment))
            draft.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
