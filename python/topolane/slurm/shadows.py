"""Copies of the plugin that Slurm loads in place of its own topology plugins.

From 25.05 on, if there is a topology.yaml next to slurm.conf, Slurm ignores TopologyPlugin and loads only plugins of its
own names. Copies of the plugin with these names, in a directory in front of PluginDir, are then loaded instead: each
wraps the stock plugin of its name (native/slurm/plugin/core.h).
"""

from __future__ import annotations

import filecmp
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from topolane.slurm.plugin_build import BUILDS, PLUGIN

FIRST_RELEASE = (25, 5)
"""The first release of Slurm that reads topology.yaml."""


def topology_yaml(configuration: Mapping[str, str]) -> Path | None:
    """The topology.yaml that Slurm reads; None if there is none, or Slurm is older."""
    release = re.match(r"(\d+)\.(\d+)", configuration.get("SLURM_VERSION", ""))
    path = Path(configuration.get("SLURM_CONF", "/etc/slurm/slurm.conf")).parent / "topology.yaml"
    if release is None or (int(release[1]), int(release[2])) < FIRST_RELEASE or not path.is_file():
        return None
    return path


def plugin_folders(configuration: Mapping[str, str]) -> list[Path]:
    """The directories of PluginDir."""
    return [Path(folder) for folder in configuration.get("PluginDir", "").split(":") if folder]


def are_loaded(configuration: Mapping[str, str]) -> bool:
    """Whether Slurm finds copies of the plugin before its own plugins."""
    first = next((folder for folder in plugin_folders(configuration) if _others(folder)), None)
    return first is not None and is_of_copies(first)


def is_of_copies(folder: Path) -> bool:
    """Whether a directory holds copies of the plugin under names of Slurm's plugins."""
    plugin = folder / PLUGIN
    return plugin.is_file() and any(filecmp.cmp(plugin, path, shallow=False) for path in _others(folder))


def stock_names(folders: Sequence[Path]) -> list[str]:
    """The file names of Slurm's own topology plugins."""
    return sorted({path.name for folder in folders if not is_of_copies(folder) for path in _others(folder)})


def build(configuration: Mapping[str, str]) -> Path | None:
    """Where the plugin looks for its build for the running Slurm on this host; None if the release or PluginDir is not
    known.
    """
    release = re.match(r"\d+\.\d+\.\d+", configuration.get("SLURM_VERSION", ""))
    folders = plugin_folders(configuration)
    if release is None or not folders:
        return None
    held = [folder for folder in folders if (folder / PLUGIN).exists()]
    return (held or folders)[0] / BUILDS / f"{release[0]}.so"


def _others(folder: Path) -> list[Path]:
    """The topology plugins in a directory, other than the plugin under its own name."""
    return [path for path in folder.glob("topology_*.so") if path.name != PLUGIN]
