"""Compiles the topology plugin: the library that Slurm loads (native/slurm/shim), which fits every release, and the build
for one release that decides in slurmctld (native/slurm/plugin), against the headers of that Slurm.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from topolane._engine import InputError
from topolane.compiling import compiled, ended, first_error

NATIVE = Path(__file__).parent / "native"
SOURCES = NATIVE / "plugin"
PLUGIN = "topology_topolane.so"
"""The library that Slurm loads."""
PLUGIN_SOURCES = (
    NATIVE / "shim" / "topology_topolane.c",
    NATIVE / "shim" / "installed.c",
    *(SOURCES / f"{part}.c" for part in ("config", "policies", "whole_file")),
)
SPANK = "topolane_spank.so"
"""The plugin that adds the option --topolane to sbatch, srun and salloc."""
SPANK_SOURCES = (
    NATIVE / "spank" / "topolane_spank.c",
    NATIVE / "shim" / "installed.c",
    SOURCES / "option.c",
    SOURCES / "policies.c",
)
ENGINE = "libtopolane.so"
BUILDS = "topolane"
"""The folder next to the plugin that has the builds, one for each release of Slurm, such as 26.05.5.so."""
RELEASE = re.compile(r"[0-9]+[.][0-9]+[.][0-9]+")
OPTIONS = ("-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-fno-strict-aliasing", "-Wl,-z,now,-z,relro")


def release_of(slurm_source: Path) -> str:
    """The release of a Slurm source tree. Raises InputError if it is none or has not been configured."""
    header = slurm_source / "slurm" / "slurm_version.h"
    try:
        found = re.search(r"SLURM_VERSION_NUMBER\s+(0x[0-9a-fA-F]+)", header.read_text())
    except OSError as error:
        raise InputError(
            f"--slurm-source {slurm_source}: {header.name}: {error.strerror}; "
            "the source of Slurm must be there and its ./configure have run"
        ) from error
    if not found or not (slurm_source / "config.h").is_file():
        raise InputError(f"--slurm-source {slurm_source}: its ./configure has not run")
    number = int(found[1], 16)
    return f"{number >> 16}.{number >> 8 & 0xFF:02}.{number & 0xFF}"


def releases_in(directory: Path) -> list[str]:
    """The releases of Slurm for which there are builds in a directory of plugins, the oldest first."""
    names = [path.stem for path in (directory / BUILDS).glob("*.so")]
    return sorted(filter(RELEASE.fullmatch, names), key=lambda name: tuple(map(int, name.split("."))))


def build(slurm_source: Path, engine: Path | None, compiler: str, directory: Path) -> str:
    """Compiles the plugin for slurmctld and the one for commands, and puts the engine next to them. Builds for other
    releases stay in the directory. Returns the release of Slurm. Raises InputError.

    engine: libtopolane.so; by default it is compiled, which works only in a clone of Topolane.
    """
    release = release_of(slurm_source)
    try:
        (directory / BUILDS).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".topolane-", dir=directory) as folder:
            includes = ["-isystem", str(slurm_source), "-isystem", str(slurm_source / "slurm")]
            sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
            made = {
                f"{BUILDS}/{release}.so": ["-DHAVE_CONFIG_H", *includes, *sources],
                PLUGIN: [*map(str, PLUGIN_SOURCES)],
                SPANK: [*includes, *map(str, SPANK_SOURCES)],
            }
            (Path(folder) / BUILDS).mkdir()
            for name, words in made.items():
                compiled("--cc", compiler, [*OPTIONS, *words, "-ldl"], Path(folder) / name)
            shutil.copyfile(engine or compiled_engine(), Path(folder) / ENGINE)
            # Replace files by rename: slurmctld may have them loaded, and loaded files must not be overwritten.
            for name in (*made, ENGINE):
                (Path(folder) / name).chmod(0o755)
                (Path(folder) / name).replace(directory / name)
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {error.strerror}") from error
    return release


def compiled_engine() -> Path:
    """Compiles the engine as a shared library in a clone, and returns its path. Raises InputError."""
    crate = Path(__file__).resolve().parents[3] / "crates" / "capi"
    if not (crate / "Cargo.toml").is_file():
        raise InputError(
            f"--engine: this is not a clone of Topolane, where {ENGINE} can be compiled: name one"
        )
    words = ["cargo", "build", "--release", "--locked", "-p", "topolane-capi", "--message-format=json"]
    try:
        done = subprocess.run(words, cwd=crate, capture_output=True, text=True)
    except OSError as error:
        raise InputError(f"the engine cannot be compiled: cargo: {error.strerror}") from error
    found = re.findall(rf'"([^"]*/{re.escape(ENGINE)})"', done.stdout)
    if done.returncode or not found:
        why = f"{ended(done.returncode)}{first_error(done.stderr)}"
        raise InputError(f"the engine cannot be compiled: cargo {why}")
    return Path(found[-1])
