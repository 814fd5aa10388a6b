"""From a configuration to Slurm and to a mirror of it: what the daemon and the commands that only look share."""

from __future__ import annotations

from collections.abc import Callable

from topolane._engine import Machine, DedicatedRoutes
from topolane.live.journal import Recorder
from topolane.slurm.bandwidth import heeds_min_bandwidth
from topolane.slurm.client import Slurm
from topolane.slurm.config import Config
from topolane.slurm.fabric import check_nodes, check_partitions, machine_of, service_hosts
from topolane.slurm.failing import Failing
from topolane.slurm.mirror import Mirror
from topolane.slurm.priority import Priorities
from topolane.slurm.programs import Programs
from topolane.slurm.records import Snapshot
from topolane.slurm.requests import Terms


def connect(config: Config) -> Slurm:
    """The configured Slurm. Raises SlurmError where it does not answer."""
    return Slurm(config.slurmrestd, token_file=config.token_file)


def mirror_of(
    config: Config, snapshot: Snapshot, write: Callable[..., None], *, shadow: bool = False
) -> Mirror:
    """An empty mirror with the configured policy and queue; `write` is told what its scheduler is.

    Raises InputError where machine, partitions or configuration do not go with what Slurm has, or
    where its priorities are asked for and cannot be computed.
    """
    check_partitions(config.partitions, snapshot)
    machine = machine_of(config, snapshot)
    check_nodes(machine, snapshot, [machine.node_name(node) for node in service_hosts(config, machine)])
    priorities = Priorities() if config.by_priority else None  # before a line of the log is written
    failing = None if config.fabric is None else Failing(config, machine)
    scheduler = Recorder(machine, config.policy, config.queue, write)
    if failing is not None and failing.out:
        scheduler.set_links_in_service(sorted(failing.out), False)
    if config.service_uplinks:
        scheduler.set_aside(DedicatedRoutes.set_aside(machine, config.service_uplinks))
    return Mirror(
        Terms(
            machine,
            config.whole_nodes,
            _programs(config, machine),
            config.min_bandwidth if heeds_min_bandwidth(config.policy) else None,
        ),
        scheduler,
        frozenset(config.partitions),
        priorities=priorities,
        failing=failing,
        shadow=shadow,
    )


def _programs(config: Config, machine: Machine) -> Programs | None:
    if config.cores_per_node is None:
        return None
    routing, model = config.routing, config.contention
    return Programs(machine, config.programs, config.cores_per_node, routing=routing, model=model)
