"""A manager's metrics for Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from topolane.cluster.families import Families
from topolane.cluster.metrics import registry_of

from topolane_sites.manager import Manager
from topolane_sites.model import Stage

OURS = Families("sites")
NEWEST_MOVES = 1000


def exposition(manager: Manager) -> tuple[bytes, str]:
    """The present metrics, and their media type."""
    return generate_latest(registry_of(lambda: metrics(manager), 0.0)), CONTENT_TYPE_LATEST


def metrics(manager: Manager) -> Iterator[Metric]:
    """What a manager knows. There is no plan before the first one is made."""
    receiver = manager.receiver
    running = [one for one in receiver.programs.values() if one.ended is None]
    yield OURS.gauge("programs", "Programs that run", len(running))
    ranks = sum(len(receiver.connected(one.id)) for one in running)
    yield OURS.gauge("ranks", "Ranks that are connected", ranks)
    yield OURS.counter("frames", "Frames taken in since the manager began", receiver.frames)
    yield OURS.counter("frames_repeated", "Frames that came twice", receiver.repeated)
    yield OURS.gauge("paused", "Whether planning is paused", manager.paused)
    yield from _of_sites(manager)
    stages = Counter(move.stage for move, _ in manager.state.moves(NEWEST_MOVES))
    words = f"Moves among the newest {NEWEST_MOVES} of the journal"
    yield OURS.gauges("moves", words, "state", {stage: stages[stage] for stage in Stage})
    plan = manager.latest
    if plan is None:
        return
    yield OURS.gauge("plan_seconds", "Time that the newest plan took", plan.seconds)
    yield OURS.gauge("plan_age_seconds", "Since the newest plan", time.time() - plan.made)
    yield OURS.gauge("plan_moves", "Moves that the newest plan wants", len(plan.moves))
    loss = {program: group.wan_now for group in plan.judged for program in group.programs}
    words = "By which part the WAN makes a program slower"
    yield OURS.gauges("program_loss_ratio", words, "program", loss)


def _of_sites(manager: Manager) -> Iterator[Metric]:
    inventory = manager.inventory
    nodes = GaugeMetricFamily(OURS.prefix + "nodes", "Hosts by state", labels=["site", "state"])
    cores = GaugeMetricFamily(OURS.prefix + "cores", "Cores of the hosts by state", labels=["site", "state"])
    for site in inventory.sites:
        hosts = [host for host in inventory.hosts.values() if host.site == site]
        names = {host.name for host in hosts}
        guests = inventory.running_on(names)
        away = names & inventory.away
        busy = {guest.host for guest in guests} - away
        for state, count in (
            ("idle", len(names) - len(away) - len(busy)),
            ("busy", len(busy)),
            ("out_of_service", len(away)),
        ):
            nodes.add_metric([site, state], count)
        used = sum(guest.cores for guest in guests)
        cores.add_metric([site, "busy"], used)
        cores.add_metric([site, "idle"], sum(host.cores for host in hosts) - used)
    yield nodes
    yield cores
