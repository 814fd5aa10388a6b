"""Installs the topology plugin and its configuration where slurmctld looks for them, and removes them again."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from topolane import files
from topolane._engine import InputError, check_live
from topolane.cluster.clients.scontrol import configuration, scontrol
from topolane.slurm import conf_file, shadows
from topolane.slurm.controllers import hosts
from topolane.slurm.plugin_build import BUILDS, ENGINE, PLUGIN, SPANK, releases_in
from topolane.slurm.plugin_machine import read_machine

CONFIGURATION = "topolane.conf"
SEGMENTS = ("slurm-block", "segments", "segments-isolated", "segments-dedicated")
POLICIES = (
    "stock",
    "first-fit",
    "slurm-tree",
    "hop-bytes",
    "isolated",
    "isolated-global",
    "jigsaw",
    "dedicated",
    *SEGMENTS,
)
OWNING = ("jigsaw", "dedicated", "segments-dedicated")
OPTIONS = ("min-bandwidth", "share-links")
"""Options other than a policy that jobs may request with --topolane."""
TYPE = "topology/topolane"
KEY = "TopologyPlugin"


@dataclasses.dataclass(frozen=True)
class SlurmFacts:
    """Facts about the running Slurm."""

    release: str
    slurm_conf: Path
    plugins: Path
    """The first directory of PluginDir that is not of our copies."""
    topology: str
    """The value of TopologyPlugin."""
    plugin_dir: str
    """The value of PluginDir."""
    yaml: Path | None
    """The topology.yaml that Slurm reads, if there is one."""
    stock: list[str]
    """The file names of Slurm's own topology plugins."""
    partitions: dict[str, str]
    """The host list of each partition."""
    controllers: list[str] = dataclasses.field(default_factory=list)
    """The hosts of slurmctld: first the primary controller, then the backups."""

    @property
    def is_by_name(self) -> bool:
        """Whether slurm.conf names the plugin itself, and not a directory of copies."""
        return self.topology == TYPE and self.yaml is None

    @property
    def configuration(self) -> Path:
        return self.slurm_conf.parent / CONFIGURATION

    @property
    def topology_file(self) -> Path:
        """Slurm's own description of its network."""
        return self.yaml or self.slurm_conf.parent / "topology.conf"


def running() -> SlurmFacts:
    """Asks slurmctld. Raises InputError if it does not answer."""
    said = configuration()
    table = scontrol("-o", "show", "partition")
    named = re.findall(r"^PartitionName=(\S+).*? Nodes=(\S+)", table, re.MULTILINE)
    return SlurmFacts(
        release=said.get("SLURM_VERSION", ""),
        slurm_conf=Path(said.get("SLURM_CONF", "/etc/slurm/slurm.conf")),
        plugins=next(
            (each for each in shadows.plugin_folders(said) if not shadows.is_of_copies(each)), Path()
        ),
        topology=said.get("TopologyPlugin", ""),
        plugin_dir=said.get("PluginDir", ""),
        yaml=shadows.topology_yaml(said),
        stock=shadows.stock_names(shadows.plugin_folders(said)),
        partitions=dict(named),
        controllers=hosts(said),
    )


def rules(policies: Sequence[str], partitions: dict[str, str]) -> list[str]:
    """The lines of topolane.conf for words PARTITION=POLICY. Raises InputError."""
    lines = []
    for word in policies:
        partition, _, policy = word.partition("=")
        if partition not in partitions:
            raise InputError(
                f"--policy {word}: Slurm has no partition {partition}; there are {', '.join(partitions)}"
            )
        if ":" in policy or "." in policy:
            raise InputError(f"--policy {word}: {policy} is a policy in Python; slurmctld runs none")
        if policy not in POLICIES:
            raise InputError(
                f"--policy {word}: there is no policy {policy!r} here; there are {', '.join(POLICIES)}"
            )
        lines.append(f"Partition={partition} Policy={policy}")
    return lines


def check_machine(
    paths: Sequence[Path], slurm: SlurmFacts, policies: Sequence[str], jobs_may: str
) -> list[str]:
    """Warnings about one or two machine files for these policies, and for those that jobs may request. Raises InputError if
    they cannot be read or do not fit together, or if a policy does not work on such a machine.
    """
    read = read_machine(paths)
    machine, messages = read.machine, list(read.assumed)
    named = " and ".join(map(str, paths))
    for policy in (*(word.partition("=")[2] for word in policies), *jobs_may.split(",")):
        if policy in POLICIES[1:]:
            try:
                check_live(machine, policy)
            except InputError as error:
                raise InputError(f"{named}: {error}") from error
    wanted = {host for word in policies for host in _hosts(slurm.partitions[word.partition("=")[0]])}
    missing = sorted(host for host in wanted if machine.node_named(host) is None)
    if wanted and len(missing) == len(wanted):
        raise InputError(
            f"{named} names none of the {len(wanted)} nodes of these partitions, such as {missing[0]}: it is of another machine"
        )
    if missing:
        messages.append(
            f"{named} does not name {len(missing)} nodes, such as {missing[0]}: stock Slurm chooses among them."
        )
    if (
        len(paths) == 1
        and paths[0].suffix in (".conf", ".yaml")
        and any(word.partition("=")[2] in OWNING for word in policies)
    ):
        messages.append(
            f"{named} has no number of cables; one between each pair of switches is assumed. Policies that "
            "give jobs links of their own need a machine file with the right number."
        )
    return messages


def _hosts(nodes: str) -> list[str]:
    return scontrol("show", "hostnames", nodes).split() if nodes != "(null)" else []


def install(
    built: Path,
    policies: Sequence[str],
    machines: Sequence[Path],
    engine_directory: Path,
    *,
    outside: str,
    jobs_may: str = "",
    without_engine: str = "stock",
) -> list[str]:
    """Installs plugin, engine, machine file and topolane.conf. Returns sentences on what was done and what is
    left to do. Raises InputError before anything is changed.
    """
    slurm = running()
    fits = releases_in(built)
    if not fits:
        raise InputError(f"--from {built}: there is no build in it: `topolane slurm plugin build` makes it")
    if slurm.release not in fits:
        raise InputError(
            f"--from {built}: it was built for Slurm {', '.join(fits)}, and slurmctld is {slurm.release}"
        )
    lines = rules(policies, slurm.partitions)
    check_words(jobs_may)
    messages = check_machine(machines or [slurm.topology_file], slurm, policies, jobs_may)
    text = [
        "# Which jobs get which policy: docs/reference/slurm-plugin.md. slurmctld reads it when it starts and at scontrol reconfigure.",
        f"Engine={engine_directory / ENGINE}",
        f"Outside={outside}",
    ]
    if without_engine != "stock":
        text.append(f"WithoutEngine={without_engine}")
    if machines:
        text.append(f"Machine={','.join(str(path.absolute()) for path in machines)}")
    elif slurm.yaml:
        text.append(f"Machine={slurm.yaml.name}")
    if jobs_may:
        text.append(f"JobsMay={jobs_may}")
    try:
        engine_directory.mkdir(parents=True, exist_ok=True)
        _place(built / ENGINE, engine_directory / ENGINE)
        plugins = _place_plugin(built, slurm, engine_directory)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
    messages += _write_configuration(slurm.configuration, "\n".join([*text, *lines]) + "\n")
    placed = (*plugins, engine_directory / ENGINE)
    messages.insert(0, f"{', '.join(map(str, placed))} and {slurm.configuration} are in place.")
    messages += _for_backups(slurm)
    messages.append(_left_to_do(slurm, engine_directory))
    if jobs_may:
        messages.append(
            f"For --topolane, copy {SPANK} into PluginDir of all hosts where jobs are submitted, and add to "
            f"plugstack.conf next to {slurm.slurm_conf} there:\n    optional {SPANK}"
        )
    return messages


def _named(slurm_conf: Path) -> str | None:
    """The topology plugin named in slurm.conf or in a file that it includes. Raises InputError if one cannot
    be read.
    """
    return conf_file.value(slurm_conf, KEY) if slurm_conf.is_file() else None


def _write_configuration(path: Path, text: str) -> list[str]:
    """Writes topolane.conf. An existing file with other lines is saved first, and a sentence says where.
    Raises InputError.
    """
    try:
        former = path.read_text() if path.exists() else text
        if former == text:
            kept = []
        else:
            kept = [f"The former {path} had other lines: it is kept as {path}.old."]
            path.replace(f"{path}.old")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: it cannot be kept: {error}") from error
    files.write(path, text, option="topolane.conf", mode=0o644)
    return kept


def check_words(jobs_may: str) -> None:
    """Checks the options that jobs may request. Raises InputError."""
    for word in filter(None, jobs_may.split(",")):
        if word not in (*POLICIES, *OPTIONS):
            known = ", ".join((*POLICIES, *OPTIONS))
            raise InputError(f"--jobs-may {jobs_may}: {word!r} is none of {known}")


def copies(engine_directory: Path) -> Path:
    """The directory of copies that have the names of Slurm's plugins."""
    return engine_directory / "slurm"


def _place_plugin(built: Path, slurm: SlurmFacts, engine_directory: Path) -> list[Path]:
    """Copies the plugins to where Slurm will load them, and adds the builds. Returns the files. Raises OSError."""
    folder = slurm.plugins if slurm.is_by_name else copies(engine_directory)
    placed = {folder / name: PLUGIN for name in (PLUGIN, *(() if slurm.is_by_name else slurm.stock))}
    placed |= {folder / BUILDS / f"{each}.so": f"{BUILDS}/{each}.so" for each in releases_in(built)}
    placed[slurm.plugins / SPANK] = SPANK
    (folder / BUILDS).mkdir(parents=True, exist_ok=True)
    for path, name in placed.items():
        _place(built / name, path)
    return list(placed)


def _place(source: Path, target: Path) -> None:
    """Copies a library over an existing one by rename, because a loaded library must not be overwritten."""
    draft = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, draft)
    draft.chmod(0o755)
    draft.replace(target)


def _for_backups(slurm: SlurmFacts) -> list[str]:
    """What to do on the other hosts of slurmctld, as sentences."""
    if len(slurm.controllers) < 2:
        return []
    listed = ", ".join(slurm.controllers)
    sentence = (
        f"slurmctld may run on {listed}: run this command with the same options on each of them, and then "
        "`topolane slurm status`, which compares the files of a host with those in use."
    )
    return [sentence]


def _left_to_do(slurm: SlurmFacts, engine_directory: Path) -> str:
    folder = copies(engine_directory)
    if slurm.is_by_name or Path(slurm.plugin_dir.split(":")[0]) == folder:
        return "slurmctld loads the plugin already: restart it, so that it reads the new files."
    return (
        f"Left to do: create {folder} on all other hosts of Slurm, where it may be empty. In {slurm.slurm_conf} write\n"
        f"    PluginDir={folder}:{slurm.plugin_dir}\n"
        "on all hosts, then restart slurmctld and the slurmds."
    )


def uninstall(engine_directory: Path) -> list[str]:
    """Removes what `install` installed. Raises InputError, with nothing changed, while slurm.conf names the
    plugin.
    """
    slurm = running()
    is_named = _named(slurm.slurm_conf) == TYPE
    if slurm.topology == TYPE and not is_named:
        raise InputError(
            f"slurmctld still runs {TYPE} although {slurm.slurm_conf} does not name it: restart slurmctld and the "
            "slurmds, and call this again"
        )
    if is_named:
        raise InputError(
            f"{slurm.slurm_conf} has TopologyPlugin={TYPE}: set it to what it was, such as topology/tree, restart "
            "slurmctld and the slurmds, and call this again"
        )
    folder = copies(engine_directory)
    in_front = conf_file.value(slurm.slurm_conf, "PluginDir") if slurm.slurm_conf.is_file() else None
    for where, value in ((str(slurm.slurm_conf), in_front), ("slurmctld", slurm.plugin_dir)):
        if folder.is_dir() and value is not None and folder in map(Path, value.split(":")):
            raise InputError(
                f"PluginDir of {where} names {folder}: remove it from slurm.conf, restart slurmctld and the slurmds, "
                "and call this again"
            )
    messages = []
    builds = [each / BUILDS for each in (slurm.plugins, folder)]
    for path in (
        slurm.plugins / PLUGIN,
        slurm.plugins / SPANK,
        *sorted(folder.glob("topology_*.so")),
        *(path for each in builds for path in sorted(each.glob("*.so"))),
        engine_directory / ENGINE,
        slurm.configuration,
    ):
        try:
            path.unlink()
            messages.append(f"{path} is removed.")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
    for each in builds:
        with contextlib.suppress(OSError):  # it is not there, or has other files
            each.rmdir()
    plugstack = slurm.slurm_conf.parent / "plugstack.conf"
    if plugstack.is_file() and SPANK in plugstack.read_text(errors="replace"):
        messages.append(f"{plugstack} still names {SPANK}: remove that line, or sbatch prints errors.")
    return messages or ["Nothing of the plugin is there."]
