"""Kueue's controller in front of topolane-scheduler, and its custom resources."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping

from control_plane import BIN, Body, ControlPlane, free_port
from waiting import until

API = "/apis/kueue.x-k8s.io/v1beta2"
RESOURCES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITIONS = BIN / "kueue-definitions"
CONVERSION = """\
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {namespace: kueue-system, name: kueue-webhook-service, path: /convert}}
      conversionReviewVersions: [v1]
"""
"""Kueue writes its certificate here. Of one version nothing is ever converted."""


def missing_kueue() -> str | None:
    """Why Kueue cannot be started here; None if it can."""
    if not os.access(BIN / "kueue", os.X_OK) or not DEFINITIONS.is_dir():
        return "kueue missing: make components builds it"
    return None


def definitions() -> list[str]:
    """Kueue's custom resources as its module has them, in the one version that its controller uses."""
    found = []
    for path in sorted(DEFINITIONS.glob("*.yaml")):
        head, _, rest = path.read_text().partition("  versions:\n")
        for version in re.split(r"^(?=  - )", rest, flags=re.MULTILINE):
            if re.search(r"^  (- |  )name: v1beta2$", version, re.MULTILINE):
                stored = version.replace("\n    storage: false\n", "\n    storage: true\n")
                found.append(f"{head}{CONVERSION}  versions:\n{stored}")
    return found


def define(plane: ControlPlane) -> None:
    """Creates Kueue's custom resources."""
    for text in definitions():
        plane.call("POST", RESOURCES, text, "application/yaml")

    def are_served() -> bool:
        conditions = [one.get("status", {}).get("conditions") or [] for one in plane.get(RESOURCES)["items"]]
        return all(any(c["type"] == "Established" and c["status"] == "True" for c in of) for of in conditions)

    until(are_served, "Kueue's resources are served")


def create(plane: ControlPlane, kind: str, plural: str, name: str, spec: Body, namespace: str = "") -> None:
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
    plane.post(f"{API}/namespaces/{namespace}/{plural}" if namespace else f"{API}/{plural}", body)


def prepare(plane: ControlPlane) -> None:
    """Kueue's namespace, and a certificate for webhooks that none calls."""
    plane.post("/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    secret = {"metadata": {"name": "kueue-webhook-server-cert"}}
    plane.post("/api/v1/namespaces/kueue-system/secrets", secret)
    certificates = plane.home / "kueue-certificates"
    certificates.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kueue",
         "-keyout", certificates / "tls.key", "-out", certificates / "tls.crt"],
        check=True, capture_output=True,
    )  # fmt: skip


def start_kueue(plane: ControlPlane, chooses: bool, **settings: object) -> None:
    """Starts Kueue's controller, which counts, and chooses nodes only if it is to. `settings` are added to its configuration."""
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": free_port(), "certDir": str(plane.home / "kueue-certificates")},
        "leaderElection": {"leaderElect": False},
        "featureGates": {"VisibilityOnDemand": False, "TopologyAwareScheduling": chooses},
        "integrations": {"frameworks": ["batch/job"]},
        **settings,
    }
    path = plane.home / "kueue.json"
    path.write_text(json.dumps(config))
    plane.run("kueue", f"--config={path}", environment={"KUBECONFIG": str(plane.kubeconfig)})


def add_topology(plane: ControlPlane, topology: str, labels: list[str]) -> None:
    create(plane, "Topology", "topologies", topology, {"levels": [{"nodeLabel": label} for label in labels]})


def add_queue(plane: ControlPlane, queue: str, room: Mapping[str, int | str], **flavor: object) -> None:
    """Creates a queue with a flavor of its own and the quotas `room`."""
    create(plane, "ResourceFlavor", "resourceflavors", queue, flavor)
    quotas = [{"name": resource, "nominalQuota": str(amount)} for resource, amount in room.items()]
    group = {"coveredResources": list(room), "flavors": [{"name": queue, "resources": quotas}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    create(plane, "ClusterQueue", "clusterqueues", queue, spec)
    create(plane, "LocalQueue", "localqueues", queue, {"clusterQueue": queue}, "default")

    def is_active() -> bool:
        conditions = plane.get(f"{API}/clusterqueues/{queue}").get("status", {}).get("conditions", [])
        return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)

    until(is_active, "Kueue's queue is active")
