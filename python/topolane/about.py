"""Facts about this installation, for `topolane --version`."""

from __future__ import annotations

import platform
from importlib.metadata import version

from topolane import _engine
from topolane.slurm.scontrol import FORMATS


def text() -> str:
    """The version, and a line for each fact about the installation."""
    commit, profile = _engine.built()
    facts = {
        "commit": commit or "not recorded by this build",
        "engine": f"profile {profile or 'not recorded'}, {platform.machine()}",
        "policies": str(len(_engine.policies())),
        "queues": ", ".join(name for name, _ in _engine.queues()),
        "machines": ", ".join(name for name, *_ in _engine.machine_formats()),
        "Slurm": f"JSON {', '.join(sorted(FORMATS))}",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
    }
    lines = [f"{name:10}{fact}" for name, fact in facts.items()]
    return "\n".join([f"topolane, version {version('topolane')}", *lines])
