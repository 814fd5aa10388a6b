"""How topolane-scheduler is configured in a cluster: its ConfigMap."""

from __future__ import annotations

import dataclasses
from typing import Any

from topolane import texts
from topolane._engine import InputError
from topolane.kubernetes.client import ForbiddenError, KubernetesCluster, NotFoundError

PLUGIN = "Topolane"
USUAL = "topolane/topolane-scheduler"
"""The ConfigMap of deploy/kubernetes."""
KEYS = ("topolane/topolane-placement-key", "kube-system/topolane-placement-key")
"""Secrets with the key that proves placements: that of deploy/kubernetes, and that of a scheduler outside the cluster."""


@dataclasses.dataclass(frozen=True)
class SchedulerSettings:
    """What is read of a KubeSchedulerConfiguration."""

    source: str | None
    """Its ConfigMap; None if none was found."""
    scheduler: str = "topolane"
    """The schedulerName of pods."""
    policy: str = "isolated"
    """The policy of groups that name none."""
    labels: tuple[str, ...] = ()
    """The keys of topology labels from the top down; none: topograph's."""
    machine: str | None = None
    """The text of the machine file, if there is one in place of labels."""
    lease: str | None = None
    """NAMESPACE/NAME of the lease by which schedulers agree; None if there is one scheduler only."""
    keys: tuple[str, ...] = KEYS
    """NAMESPACE/NAME of the Secrets that may have the key that proves placements."""


def settings(cluster: KubernetesCluster, config_map: str | None) -> SchedulerSettings:
    """The settings in a ConfigMap, NAMESPACE/NAME. None: the usual one, or the defaults if there is none or
    the user may not read it.
    """
    space, slash, name = (config_map or USUAL).partition("/")
    if not (space and slash and name):
        raise InputError(f"--config {config_map}: must be NAMESPACE/NAME of a ConfigMap")
    try:
        found = cluster.get(f"/api/v1/namespaces/{space}/configmaps/{name}")
    except NotFoundError:
        if config_map is not None:
            raise InputError(f"--config {config_map}: there is no such ConfigMap") from None
        return SchedulerSettings(None)
    except ForbiddenError:
        if config_map is not None:
            raise
        return SchedulerSettings(None)
    return _read(f"ConfigMap {space}/{name}", found.get("data") or {})


def _read(source: str, data: dict[str, str]) -> SchedulerSettings:
    import yaml

    for key, text in data.items():
        try:
            config = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(config, dict) and config.get("kind") == "KubeSchedulerConfiguration":
            return _of(f"{source}: {key}", source, config, data)
    raise InputError(f"{source}: holds no KubeSchedulerConfiguration")


def _of(where: str, source: str, config: dict[str, Any], data: dict[str, str]) -> SchedulerSettings:
    try:
        for profile in config.get("profiles") or []:
            for plugin in profile.get("pluginConfig") or []:
                if plugin.get("name") == PLUGIN:
                    given = plugin.get("args") or {}
                    file = str(given.get("machineFile") or "").rpartition("/")[2]
                    return SchedulerSettings(
                        source,
                        str(profile.get("schedulerName") or "default-scheduler"),
                        str(given.get("policy") or "isolated"),
                        tuple(map(str, given.get("topologyLabels") or ())),
                        data.get(file) if file else None,
                        _lease(config.get("leaderElection") or {}),
                        _keys(given.get("placementKey"), source),
                    )
    except (AttributeError, TypeError) as error:
        raise InputError(f"{where}: not a KubeSchedulerConfiguration: {texts.shown(str(error))}") from error
    raise InputError(f"{where}: no profile has the plugin {PLUGIN}")


def _keys(named: Any, source: str) -> tuple[str, ...]:
    """The Secret that is named, or else that of the namespace of the ConfigMap: the scheduler runs there."""
    space = source.partition(" ")[2].partition("/")[0]
    own = f"{space}/{KEYS[0].partition('/')[2]}"
    return (named,) if isinstance(named, str) and named else (own, *(each for each in KEYS if each != own))


def _lease(election: dict[str, Any]) -> str | None:
    if election.get("leaderElect") is False:
        return None
    return f"{election.get('resourceNamespace') or 'kube-system'}/{election.get('resourceName') or 'kube-scheduler'}"
