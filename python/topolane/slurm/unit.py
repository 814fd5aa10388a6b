"""The daemon as a service of systemd."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from topolane._engine import InputError
from topolane.slurm.config import Config

UNIT = """\
# /etc/systemd/system/topolane-slurm.service, from `topolane slurm unit`
[Unit]
Description=Topolane, which places the jobs of Slurm
Documentation=man:slurm.conf(5)
Wants=network-online.target
After=network-online.target munge.service slurmctld.service slurmrestd.service

[Service]
Type=exec
ExecStart={command} slurm run --config {config}
Environment={environment}
Restart=on-failure
RestartSec=5
# All that it does is to talk to slurmrestd, to run scontrol, and to write its log.
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateDevices=yes
CapabilityBoundingSet=CAP_DAC_OVERRIDE
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
# Its locks. Kept, as a daemon that was started by hand may have one there.
RuntimeDirectory=topolane-slurm
RuntimeDirectoryPreserve=yes
{writable}
[Install]
WantedBy=multi-user.target
"""


def unit(config: Config, path: str) -> str:
    """A unit file for the daemon with the configuration at `path`. Raises InputError if no command `topolane`
    is installed.
    """
    sibling = Path(sys.executable).with_name("topolane")
    command = str(sibling) if sibling.exists() else shutil.which("topolane")
    if command is None:
        raise InputError("there is no command topolane on the PATH for the unit to start")
    conf = os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf")
    log = Path(config.log).absolute().parent if config.log else None
    return UNIT.format(
        command=_word(command),
        config=_word(str(Path(path).absolute())),
        environment=_word(f"SLURM_CONF={conf}"),
        writable=f"ReadWritePaths={_word(str(log))}\n" if log else "",
    )


def _word(text: str) -> str:
    """A word of a unit file, with % and $ doubled so that systemd takes them literally."""
    if any(mark in text for mark in "\n\"'\\"):
        raise InputError(f"{text!r} cannot be written into a unit file")
    quoted = text.replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"' if shlex.quote(text) != text else quoted
