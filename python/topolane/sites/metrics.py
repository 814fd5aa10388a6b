"""A manager's metrics for Prometheus."""

from __future__ import annotations

import time

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from topolane.sites.manager import Manager
from topolane.sites.model import Stage


def exposition(manager: Manager) -> tuple[bytes, str]:
    """The present metrics, and their media type."""
    registry = CollectorRegistry()

    def gauge(name: str, words: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(f"topolane_sites_{name}", words, labels, registry=registry)

    running = [one for one in manager.receiver.programs.values() if one.ended is None]
    gauge("programs", "Programs that run").set(len(running))
    gauge("ranks", "Ranks that are connected").set(
        sum(len(manager.receiver.connected(one.id)) for one in running)
    )
    gauge("frames_total", "Frames taken in since the manager began").set(manager.receiver.frames)
    gauge("frames_repeated_total", "Frames that came twice").set(manager.receiver.repeated)
    gauge("paused", "Whether planning is paused").set(manager.paused)
    silent = gauge("hosts_silent", "Hosts that no longer report", ("site",))
    cores = gauge("cores", "Cores of the hosts", ("site", "state"))
    for site in manager.inventory.sites:
        hosts = [host for host in manager.inventory.hosts.values() if host.site == site]
        names = {host.name for host in hosts}
        used = sum(guest.cores for guest in manager.inventory.running_on(names))
        silent.labels(site).set(len(names & manager.inventory.away))
        cores.labels(site, "used").set(used)
        cores.labels(site, "free").set(sum(host.cores for host in hosts) - used)
    moves = gauge("moves", "Moves of the journal", ("stage",))
    stages = [move.stage for move, _ in manager.state.moves(1000)]
    for stage in Stage:
        moves.labels(stage).set(stages.count(stage))
    plan = manager.latest
    if plan is not None:
        gauge("plan_seconds", "Time that the newest plan took").set(plan.seconds)
        gauge("plan_age_seconds", "Since the newest plan").set(time.time() - plan.made)
        gauge("plan_moves", "Moves that the newest plan wants").set(len(plan.moves))
        loss = gauge("loss", "Seconds that a second of a program takes longer by the WAN", ("program",))
        for group in plan.judged:
            for program in group.programs:
                loss.labels(program).set(group.wan_now)
    return generate_latest(registry), CONTENT_TYPE_LATEST
