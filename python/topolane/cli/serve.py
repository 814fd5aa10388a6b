"""`topolane serve`: one live page over a replayed log, a running Slurm or Kubernetes, or a shadow's log."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from topolane import extras, texts
from topolane._engine import InputError
from topolane.cli import common, settings, values
from topolane.cli.explained import ExplainedCommand
from topolane.cli.k8s_common import cluster_options, connected, keys, labels_options
from topolane.policy import resolve
from topolane.run import Settings
from topolane.sources import Shape
from topolane.sweep import Task, compare

if TYPE_CHECKING:
    from topolane.kubernetes.client import KubernetesCluster
    from topolane.mpi.address import Address
    from topolane.serve.gate import PageAccess
    from topolane.serve.source import SnapshotSource

DEFAULT_POLICY = "dedicated"
DEFAULT_SHADOW = "first-fit"
LEAST_TOKEN = 16
"""Letters of a token."""
HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
NAME = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?")
ONLY_LOG = (
    *("workload", "trace", "queue", "at", "speed", "seed", "default_walltime", "min_bandwidth"),
    *(field.name for field in dataclasses.fields(Shape) if "help" in field.metadata),
)
"""Options of a replayed log."""
ONLY_SLURM = ("state", "slurmrestd", "slurm_token_file")
ONLY_KUBERNETES = ("kubeconfig", "context", "labels", "config")


@click.command(
    "serve",
    cls=ExplainedCommand,
    examples={
        "Show the Slurm of this machine": "--slurm",
        "Replay a log, next to another policy": "--trace log.swf --machine machine.toml --shadow slurm-tree",
    },
    common="slurm kubernetes shadow-log workload trace machine policy queue listen token-file",
)
@click.option("--slurm", is_flag=True, help="Show the Slurm of this machine, or of --slurmrestd.")
@click.option("--kubernetes", is_flag=True, help="Show the Kubernetes cluster of --kubeconfig.")
@click.option(
    "--shadow-log",
    metavar="FILE",
    help="Show the log of `topolane slurm shadow` or `topolane k8s shadow`: its system, and its policy next to it.",
)
@common.machine_options
@settings.workload_options
@click.option(
    "--policy",
    type=values.POLICY,
    help="Policy of the replay, and of questions by default [default: dedicated; with --slurm: the one that the plugin gives most "
    "jobs, else slurm-tree; with --kubernetes: that of topolane-scheduler].",
)
@settings.options_of(Settings, only=("queue", "seed", "default_walltime", "min_bandwidth"))
@click.option(
    "--shadow",
    "shadows",
    type=values.POLICIES,
    help="Policies to compare with, separated by commas: their utilisation, queue and waits are drawn too; none for none [default: "
    "first-fit for a replayed log, else none]. In a live system they get the same jobs as they come, and each job runs as long as it did.",
)
@click.option(
    "--at",
    type=float,
    callback=common.moment,
    help="Hours after the first submission at which the clock starts [default: the minute with the longest queue].",
)
@click.option(
    "--speed",
    type=common.Number(0, 1e6),
    default=60.0,
    show_default=True,
    help="Seconds of the log in a second; 0 stops its clock.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --slurm: the directory of the plugin's state [default: slurmctld's StateSaveLocation].",
)
@click.option(
    "--slurmrestd",
    metavar="ADDRESS",
    help="Read Slurm through slurmrestd at unix:PATH or http(s)://HOST:PORT [default: by scontrol].",
)
@click.option("--slurm-token-file", metavar="FILE", help="A JWT, if slurmrestd requires one.")
@click.option(
    "--interval",
    type=common.Number(1, 3600),
    default=10.0,
    show_default=True,
    help="With --slurm, --kubernetes or --shadow-log: seconds between two looks.",
)
@cluster_options
@labels_options
@click.option(
    "--listen",
    default="127.0.0.1:9755",
    show_default=True,
    metavar="ADDRESS",
    help="HOST:PORT or unix:PATH. Beyond this machine it needs --token-file.",
)
@click.option(
    "--token-file", metavar="FILE", help="File with a token of 16 letters or more that viewers must show."
)
@click.option(
    "--auth-header",
    metavar="NAME",
    help="Header in which a proxy names the user that it has let in, such as X-Remote-User.",
)
@click.option(
    "--public-name",
    "public_names",
    multiple=True,
    metavar="NAME",
    help="Name under which a proxy shows the page; repeat it for several.",
)
@click.option(
    "--viewers", type=click.IntRange(1, 5000), default=200, show_default=True, help="Most viewers at a time."
)
def command(
    slurm: bool,
    kubernetes: bool,
    shadow_log: str | None,
    listen: str,
    token_file: str | None,
    auth_header: str | None,
    public_names: tuple[str, ...],
    viewers: int,
    **others: Any,
) -> None:
    """Show a replayed log, a running Slurm or Kubernetes, or a shadow's log on a live page.

    It shows the machine, the queue and the coming hours. The page only reads. It listens on this machine only, unless --listen says otherwise.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise extras.missing("the page", "serve", error) from error
    from topolane.mpi.address import Address
    from topolane.serve.api import PAGE
    from topolane.serve.server import serve

    if not (PAGE / "index.html").is_file():
        raise InputError(f"{PAGE}: the page is not built: run `make page` in a clone of Topolane")
    address = Address.parse(listen)
    access = _access(address, token_file, auth_header, public_names)
    if sum((slurm, kubernetes, shadow_log is not None)) > 1:
        raise InputError("--slurm, --kubernetes and --shadow-log: give one of them")
    _refuse_what_is_of_others(slurm, kubernetes, shadow_log is not None)
    compared = _compared_live(others["shadows"]) if slurm or kubernetes else []
    with contextlib.ExitStack() as held:
        if kubernetes:
            source = _kubernetes(
                others, held.enter_context(connected(others["kubeconfig"], others["context"]))
            )
        elif shadow_log is not None:
            source = _shadow(shadow_log, others)
        else:
            source = _slurm(others) if slurm else _log(others)
        serve(
            *(source, address, access),
            viewers=viewers,
            policies=compared,
            ready=lambda url: click.echo(f"{url}  ({source.title})"),
        )


def _refuse_what_is_of_others(slurm: bool, kubernetes: bool, shadow: bool) -> None:
    if slurm or kubernetes or shadow:
        _refuse(ONLY_LOG, "a replayed log")
    else:
        _refuse(("interval",), "--slurm, --kubernetes and --shadow-log")
    if shadow:
        _refuse(("shadows",), "other systems: a shadow's log has its policy")
        _refuse(("machine",), "other systems: a shadow's log has its machine")
    if not slurm:
        _refuse(ONLY_SLURM, "--slurm")
    if not kubernetes:
        _refuse(ONLY_KUBERNETES, "--kubernetes")


def _compared(shadows: str | None) -> list[str]:
    """The policies of --shadow, each once. Raises InputError for one that there is not."""
    found = [name for name in common.names(shadows or "") if name != "none"]
    for name in found:
        resolve(name)
    return found


def _compared_live(shadows: str | None) -> list[str]:
    """The policies of --shadow for a live system. Raises InputError for one that needs a log."""
    found = _compared(shadows)
    if "recorded" in found:
        raise InputError("--shadow recorded: a live system has no recorded starts")
    return found


def _shadow(path: str, given: dict[str, Any]) -> SnapshotSource:
    from topolane.serve.shadow import ShadowSource

    return ShadowSource(path, given["policy"], given["interval"])


def _access(
    address: Address, token_file: str | None, auth_header: str | None, names: tuple[str, ...]
) -> PageAccess:
    from topolane.serve.gate import PageAccess

    token = None if token_file is None else texts.read_text(token_file, texts.SMALL).strip()
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InputError(f"--token-file {token_file}: a token has {LEAST_TOKEN} printable letters or more")
    if token is None and not address.is_local:
        raise InputError(f"--listen {address}: others can reach this address: give --token-file")
    if auth_header is not None and not HEADER.fullmatch(auth_header):
        raise InputError(f"--auth-header {texts.shown(auth_header)}: is no name of a header")
    for name in names:
        if not NAME.fullmatch(name):
            raise InputError(f"--public-name {texts.shown(name)}: must be a name such as hpc.example.org")
    return PageAccess(token, auth_header, names, any_name=not address.is_local)


def _refuse(options: tuple[str, ...], needs: str) -> None:
    """Raises InputError if one of these options is given."""
    context = click.get_current_context()
    for option in context.command.params:
        if (
            option.name in options
            and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
        ):
            raise InputError(f"{option.opts[0]} is of {needs}")


def _slurm(given: dict[str, Any]) -> SnapshotSource:
    from topolane.serve.slurm import SlurmSource
    from topolane.slurm.inspection import InspectionSettings

    where = InspectionSettings(given["state"], given["slurmrestd"], given["slurm_token_file"])
    return SlurmSource(where, _named_machine(given), given["policy"], given["interval"])


def _kubernetes(given: dict[str, Any], cluster: KubernetesCluster) -> SnapshotSource:
    from topolane.kubernetes.inspection import Where
    from topolane.serve.kubernetes import KubernetesSource

    where = Where(given["config"], _named_machine(given), keys(given["labels"]))
    return KubernetesSource(cluster, where, given["policy"], given["interval"])


def _named_machine(given: dict[str, Any]) -> str | None:
    """The machine if the user names one: a live system has its own."""
    named = click.get_current_context().get_parameter_source("machine") is ParameterSource.COMMANDLINE
    return given["machine"] if named else None


def _log(given: dict[str, Any]) -> SnapshotSource:
    from topolane.serve.replay import ReplaySource

    at, speed, shadows = given["at"], given["speed"], given["shadows"]
    shape = settings.shape_of(given)
    if "chosen_cores" in given:
        raise InputError("--cores-per-node: give a number; a replay has no network to choose the cores by")
    task = Task(
        machine=given["machine"],
        machine_format=given["machine_format"],
        nodes=given["nodes"],
        topology=given["topology"],
        join=given["join"],
        workload=common.source_of(given["workload"], given["trace"], default="cab-aug"),
        shape=shape,
        policy=given["policy"] or DEFAULT_POLICY,
        failures="none",
        **{name: given[name] for name in ("queue", "seed", "default_walltime", "min_bandwidth")},
    )
    common.tell_notes([*task.notes(), *task.log_notes()])
    shown = DEFAULT_SHADOW if shadows is None else shadows
    compared = [name for name in _compared(shown) if name != task.policy]
    tasks = [task, *(dataclasses.replace(task, policy=name, min_bandwidth=None) for name in compared)]
    with common.counting_bar("simulating", len(tasks)) as done:
        runs = compare(tasks, done=done)
    return ReplaySource(task, runs, None if at is None else 3600.0 * at, speed)
