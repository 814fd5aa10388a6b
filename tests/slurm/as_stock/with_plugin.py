"""The topology plugin as another setting: compiled, and with one policy for all jobs."""

from __future__ import annotations

from pathlib import Path

from live_cluster import RELEASE, slurm_source


def settings(policy: str, engine: Path | None, directory: Path) -> tuple[list[str], list[Path]]:
    """Lines of slurm.conf, and files that stand next to it. `engine` is libtopolane.so, by default compiled here.
    Raises Missing if the headers of that Slurm cannot be had.
    """
    from topolane.slurm import plugin_build

    built = directory / "plugin"
    plugin_build.build(slurm_source(RELEASE), engine, "cc", built)
    conf = directory / "topolane.conf"
    conf.write_text(f"Engine={built / plugin_build.ENGINE}\nPolicy={policy}\n")
    plugins = f"PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{built}"
    return ["TopologyPlugin=topology/topolane", plugins], [conf]
