"""Where slurmctld and the topology plugin keep their state."""

from __future__ import annotations

from pathlib import Path

from topolane._engine import InputError
from topolane.cluster.clients.scontrol import configuration


def state_save_location() -> Path:
    """StateSaveLocation, as scontrol says. Raises InputError."""
    found = configuration().get("StateSaveLocation")
    if not found:
        raise InputError("scontrol does not say what StateSaveLocation is: name it with --state")
    return Path(found)
