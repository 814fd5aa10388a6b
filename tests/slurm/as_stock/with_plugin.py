"""The topology plugin as another setting: compiled, and with one policy for all jobs."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def settings(policy: str, engine: Path | None, directory: Path) -> tuple[list[str], list[Path]]:
    """Lines of slurm.conf, and files that stand next to it. `engine` is libtopolane.so, by default compiled here."""
    from topolane.slurm import plugin_build

    done = subprocess.run([HERE.parent / "slurm_source.sh", "trixie"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    built = directory / "plugin"
    plugin_build.build(Path(done.stdout.strip()), engine, "cc", built)
    conf = directory / "topolane.conf"
    conf.write_text(f"Engine={built / plugin_build.ENGINE}\nPolicy={policy}\n")
    plugins = f"PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{built}"
    return ["TopologyPlugin=topology/topolane", plugins], [conf]
