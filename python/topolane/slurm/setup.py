"""Builds the Slurm client and the mirror from a configuration, for the daemon and for commands that only
read.
"""

from __future__ import annotations

from collections.abc import Callable

from topolane._engine import DedicatedRoutes, Machine, traffic_policies
from topolane.live.journal import Recorder
from topolane.slurm.bandwidth import heeds_min_bandwidth
from topolane.slurm.client import Slurm
from topolane.slurm.config import Config
from topolane.slurm.fabric import check_nodes, check_partitions, machine_of, service_hosts
from topolane.slurm.job_traffic import TrafficOfJobs
from topolane.slurm.link_failures import LinkFailures
from topolane.slurm.mirror import Mirror
from topolane.slurm.priority import Priorities
from topolane.slurm.programs import Programs
from topolane.slurm.records import Snapshot
from topolane.slurm.requests import RequestSettings


def connect(config: Config) -> Slurm:
    """A client of the configured Slurm. Raises SlurmError if it does not answer."""
    return Slurm(config.slurmrestd, token_file=config.token_file)


def mirror_of(
    config: Config, snapshot: Snapshot, write: Callable[..., None], *, shadow: bool = False
) -> Mirror:
    """An empty mirror with the configured policy and queue. `write` takes the log events of its scheduler.

    Raises InputError if machine, partitions or configuration do not match Slurm, or if the queue needs
    priorities that cannot be computed.
    """
    check_partitions(config.partitions, snapshot)
    machine = machine_of(config, snapshot)
    check_nodes(machine, snapshot, [machine.node_name(node) for node in service_hosts(config, machine)])
    priorities = Priorities() if config.by_priority else None  # before a line of the log is written
    failures = None if config.fabric is None else LinkFailures(config, machine)
    scheduler = Recorder(machine, config.policy, config.queue, write, routing=config.routing)
    if failures is not None and failures.out:
        scheduler.set_links_in_service(sorted(failures.out), False)
    if config.service_uplinks:
        scheduler.set_aside(DedicatedRoutes.set_aside(machine, config.service_uplinks))
    return Mirror(
        RequestSettings(
            machine,
            config.whole_nodes,
            _programs(config, machine),
            config.min_bandwidth if heeds_min_bandwidth(config.policy) else None,
            TrafficOfJobs(config.programs, config.matrices) if config.policy in traffic_policies() else None,
        ),
        scheduler,
        frozenset(config.partitions),
        priorities=priorities,
        failures=failures,
        shadow=shadow,
    )


def _programs(config: Config, machine: Machine) -> Programs | None:
    if config.cores_per_node is None:
        return None
    routing, model = config.routing, config.contention
    return Programs(machine, config.programs, config.cores_per_node, routing=routing, model=model)
