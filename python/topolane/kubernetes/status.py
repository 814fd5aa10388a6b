"""Whether topolane-scheduler works in a cluster: what `topolane k8s status` prints in addition to the rows of all systems."""

from __future__ import annotations

import dataclasses

from topolane.cluster.decided import NO_ENGINE
from topolane.cluster.status import Status
from topolane.kubernetes.inspection import KubernetesInspection
from topolane.kubernetes.view import view
from topolane.units import duration


@dataclasses.dataclass(frozen=True)
class SchedulerLiveness:
    """Whether a scheduler decides. Times in seconds since 1970."""

    active: bool | None
    """Whether one holds the lease; None if there is no lease to tell."""
    why: str | None
    """Why it is not active, or not known to be: a sentence."""
    scheduler: str
    """The schedulerName of its pods."""
    holder: str | None
    """The one that decides."""
    renewed: float | None
    """When it renewed its lease."""
    settings: str | None
    """The ConfigMap with its settings."""
    machine_nodes: int | None
    unable: str | None = None
    """Why the engine does not decide though a scheduler holds the lease: a sentence; None if nothing says so."""


@dataclasses.dataclass(frozen=True)
class ClusterStatus(Status):
    """All that is known."""

    server: str
    liveness: SchedulerLiveness


def status(look: KubernetesInspection) -> ClusterStatus:
    """The figures and rows of a look."""
    return ClusterStatus(
        **vars(Status.of(look.machine, view(look))), server=look.server, liveness=liveness(look)
    )


def liveness(look: KubernetesInspection) -> SchedulerLiveness:
    """Whether a scheduler decides, by its lease."""
    lease, active, why = look.lease, None, None
    if look.settings.lease is None:
        why = "It is not known whether a scheduler decides: no ConfigMap names its lease (--config)."
        if look.settings.source is not None:
            why = (
                f"It is not known whether a scheduler decides: {look.settings.source} has no leader election."
            )
    elif lease is None or not lease.holder or lease.renewed is None:
        active, why = False, f"No scheduler holds lease {look.settings.lease}: pods of its groups wait."
    elif look.time - lease.renewed > 2 * lease.seconds:
        past = duration(look.time - lease.renewed)
        active, why = (
            False,
            f"{lease.holder} has not renewed lease {lease.name} for {past}: pods of its groups wait.",
        )
    else:
        active = True
    return SchedulerLiveness(
        active,
        why,
        look.settings.scheduler,
        lease.holder if lease else None,
        lease.renewed if lease else None,
        look.settings.source,
        look.machine.nodes if look.machine else None,
        _unable(look),
    )


def _unable(look: KubernetesInspection) -> str | None:
    """Why the engine does not decide, as far as the groups that wait or the scheduler's own settings say."""
    waits = [group for group in look.groups.values() if not group.placed]
    kinds = [(group.name, said.refused.kind) for group in waits if (said := group.decided) and said.refused]
    stuck = [name for name, kind in kinds if kind == NO_ENGINE]
    if stuck:
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        return f"The engine cannot answer, so {stuck[0]}{more} must wait: `topolane k8s explain {stuck[0]}` says why."
    if look.machine is None and look.settings.source is not None:
        return f"The engine cannot answer: {look.settings.source} leads to no machine."
    return None
