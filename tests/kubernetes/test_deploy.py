"""deploy/kubernetes on a real API server: all objects are accepted, and a service account with these rights alone places groups."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from control_plane import LABELS, ControlPlane, container, missing, name
from waiting import DEADLINE, until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "kubernetes"
yaml = pytest.importorskip("yaml", reason="PyYAML is missing")
Body = dict[str, Any]

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


def objects() -> list[Body]:
    """All objects of the folder, in the order of kustomization.yaml."""
    listed = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"]
    return [one for file in listed for one in yaml.safe_load_all((DEPLOY / file).read_text())]


def path_of(one: Body) -> str:
    return PATHS[one["kind"]].format(one["metadata"].get("namespace", ""))


def configuration() -> Body:
    (found,) = [one for one in objects() if one["kind"] == "ConfigMap"]
    return dict(yaml.safe_load(found["data"]["scheduler.yaml"]))


def test_every_file_of_the_folder_is_used() -> None:
    """kustomization.yaml names all files, the container file copies what is there, and the parts name each other."""
    listed = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in DEPLOY.glob("*.yaml")}
    for line in re.findall(r"^COPY (?!--)(.*) \S+$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE):
        assert all((ROOT / path).exists() for path in line.split()), line
    (deployment,) = [one for one in objects() if one["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    (accounts,) = [one["metadata"]["name"] for one in objects() if one["kind"] == "ServiceAccount"]
    assert pod["serviceAccountName"] == accounts
    lease = configuration()["leaderElection"]
    (role,) = [
        one
        for one in objects()
        if path_of(one).endswith("/topolane/roles") and "scheduler" in one["metadata"]["name"]
    ]
    assert role["metadata"]["namespace"] == lease["resourceNamespace"]
    assert role["rules"][1]["resourceNames"] == [lease["resourceName"]]


def test_the_container_file_copies_what_is_there_and_names_the_version() -> None:
    """All that it copies is in the repository, and the scheduler says the version of the Kubernetes that it is made of."""
    text = (DEPLOY / "Containerfile").read_text()
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
        for source in line.split()
    ]
    assert copied and all((ROOT / source).exists() for source in copied)
    (version,) = re.findall(
        r"k8s.io/kubernetes (v\S+)", (ROOT / "native" / "kubernetes" / "go.mod").read_text()
    )
    files = [ROOT / "Makefile", ROOT / "tools" / "components.py"]
    for named in (text, *(file.read_text() for file in files)):
        assert f"version.gitVersion={version}" in named


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
def test_kustomize_builds_the_folder() -> None:
    """kubectl kustomize prints the same objects, with the image that kustomization.yaml names."""
    done = subprocess.run(["kubectl", "kustomize", str(DEPLOY)], capture_output=True, text=True)
    if done.returncode and "unknown command" in done.stderr:
        pytest.skip("this kubectl has no kustomize")
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    key = lambda one: (one["kind"], one["metadata"]["name"])
    assert {key(one) for one in built} == {key(one) for one in objects()}
    assert "image: topolane-scheduler:" in done.stdout


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_service_account_with_these_rights_alone_places_groups(empty: ControlPlane) -> None:
    """The folder is applied; a scheduler with a token of its service account places a group whose size a PodGroup says, next to
    the default scheduler. The API server forbids it nothing, and everything that it does not need.
    """
    for one in objects():
        create(empty, one)
    definition = crd()
    empty.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    empty.kill("topolane-scheduler")
    try:
        kubeconfig = login(empty)
        start(empty, kubeconfig)
        empty.run("topolane-scheduler", f"--config={stock(empty)}", "--secure-port=0", log="stock")
        groups = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
        group, alone = name(), name()
        until(lambda: empty.get(groups), "PodGroups are served")
        empty.post(groups, {**kind_of(definition), "metadata": {"name": group}, "spec": {"minMember": 6}})
        for rank in range(6):
            empty.post("/api/v1/namespaces/default/pods", pod_of(group, rank))
        empty.post(
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": alone}, "spec": {"containers": [container(1)]}},
        )
        nodes = empty.placed(group, 6)
        assert len(set(nodes)) == 6
        said = empty.pods(group)[0]["metadata"]["annotations"]["topolane.io/placement"]
        assert json.loads(said)["policy"] == "isolated"
        by_name = lambda: {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in empty.pods()}
        until(lambda: by_name()[alone], "the default scheduler places a pod")
        lease = empty.get("/apis/coordination.k8s.io/v1/namespaces/topolane/leases/topolane-scheduler")
        assert lease["spec"]["holderIdentity"]
        assert "is forbidden" not in empty.log("with-token"), refusals(empty.log("with-token"))
        key = empty.get("/api/v1/namespaces/topolane/secrets/topolane-placement-key")
        assert key["immutable"] and len(base64.b64decode(key["data"]["key"])) == 32
        for method, path in (
            ("GET", "/api/v1/namespaces/topolane/secrets"),
            ("GET", "/api/v1/namespaces/topolane/secrets/another"),
            ("DELETE", "/api/v1/namespaces/topolane/secrets/topolane-placement-key"),
            ("GET", "/api/v1/namespaces/kube-system/secrets/topolane-placement-key"),
            ("GET", "/api/v1/namespaces/kube-system/configmaps"),
            ("POST", "/api/v1/namespaces/default/pods"),
            ("DELETE", "/api/v1/nodes/n00"),
            ("PATCH", "/api/v1/nodes/n00"),
            ("DELETE", f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/{group}"),
            ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/topolane-scheduler"),
        ):
            assert allowed(empty, kubeconfig, method, path) == 403, (method, path)
    finally:
        for process in ("with-token", "stock"):
            if process in empty.processes:
                empty.kill(process)
        remove(empty, objects())
        empty.delete("/api/v1/namespaces/topolane/secrets/topolane-placement-key")
        empty.delete(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
        )
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)


def login(plane: ControlPlane) -> Path:
    """A kubeconfig with a token of the service account."""
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    said = plane.post("/api/v1/namespaces/topolane/serviceaccounts/topolane-scheduler/token", asked)
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": said["status"]["token"]}
    path = plane.home / "service-account"
    path.write_text(json.dumps(config))
    return path


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_topolane_k8s_reads_a_cluster_from_inside_a_pod(
    empty: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token and the certificate that a pod has, and the rights of reader.yaml alone, are enough for all commands. Without the
    ConfigMap's role, the settings are the defaults.
    """
    pytest.importorskip("httpx", reason="needs the extra kubernetes: httpx")
    from topolane.kubernetes import kubeconfig
    from topolane.kubernetes.client import ForbiddenError, KubernetesCluster
    from topolane.kubernetes.export import job_records
    from topolane.kubernetes.inspection import Where, inspect

    mine = [
        one
        for one in objects()
        if "reader" in one["metadata"]["name"] and "metrics" not in one["metadata"]["name"]
    ]
    space = next(one for one in objects() if one["kind"] == "Namespace")
    account = {"metadata": {"name": "reader", "namespace": "topolane"}, "kind": "ServiceAccount"}
    settings = next(one for one in objects() if one["kind"] == "ConfigMap")
    made = [space, account, settings, *mine, binding("ClusterRole")]
    group = name()
    empty.submit(group, 2)
    empty.placed(group, 2)
    try:
        for one in made:
            create(empty, one)
        token = empty.post("/api/v1/namespaces/topolane/serviceaccounts/reader/token", {"spec": {}})[
            "status"
        ]["token"]
        (tmp_path / "token").write_text(token)
        (tmp_path / "ca.crt").write_bytes((empty.home / "certificates" / "apiserver.crt").read_bytes())
        monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(empty.port))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("KUBECONFIG", raising=False)
        cluster = KubernetesCluster(kubeconfig.access())
        look = inspect(cluster, Where(labels=tuple(LABELS)))
        assert look.settings.source is None and f"default/{group}" in look.groups
        job_records(cluster)
        create(empty, binding("Role"))
        look = until(
            lambda: (one := inspect(cluster, Where(labels=tuple(LABELS)))).settings.source and one,
            "the role counts",
        )
        assert look.settings.lease == "topolane/topolane-scheduler"
        (said,) = look.problems
        assert said.startswith(
            f"Nothing proves how topolane-scheduler placed default/{group}, so only the nodes"
        )
        assert "Secret topolane/topolane-placement-key cannot be read" in said
        with pytest.raises(ForbiddenError, match="refuses GET /api/v1/secrets"):
            cluster.items("/api/v1/secrets")
    finally:
        remove(empty, [*made, binding("Role")])


def create(plane: ControlPlane, one: Body) -> None:
    """Creates an object; a namespace may be there."""
    try:
        plane.post(f"{path_of(one)}?fieldValidation=Strict", one)
    except urllib.error.HTTPError as error:
        assert one["kind"] == "Namespace" and error.code == 409, error.read()


def remove(plane: ControlPlane, all_of_them: list[Body]) -> None:
    """Deletes objects. No controller empties namespaces here, so they stay."""
    for one in reversed(all_of_them):
        if one["kind"] != "Namespace":
            plane.delete(f"{path_of(one)}/{one['metadata']['name']}")


def binding(kind: str) -> Body:
    """Binds the service account `reader` to a role of reader.yaml."""
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "topolane"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "topolane-reader"}
    meta = {"name": "reader"} | ({"namespace": "topolane"} if kind == "Role" else {})
    return {"kind": f"{kind}Binding", "metadata": meta, "roleRef": role, "subjects": [subject]}


def start(plane: ControlPlane, kubeconfig: Path) -> None:
    """Starts a scheduler with the folder's configuration, outside the cluster, with that kubeconfig."""
    config = configuration()
    config["clientConnection"]["kubeconfig"] = str(kubeconfig)
    config["profiles"][0]["pluginConfig"][0]["args"]["topologyLabels"] = LABELS
    path = plane.home / "of-the-folder.json"
    path.write_text(json.dumps(config))
    given = [f"--{what}-kubeconfig={kubeconfig}" for what in ("authentication", "authorization")]
    plane.run("topolane-scheduler", f"--config={path}", "--secure-port=0", "-v=2", *given, log="with-token")


def stock(plane: ControlPlane) -> Path:
    """The configuration of the default scheduler alone."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.kubeconfig)},
        "leaderElection": {"leaderElect": False},
    }
    path = plane.home / "stock.json"
    path.write_text(json.dumps(config))
    return path


def pod_of(group: str, rank: int) -> Body:
    labels = {"scheduling.x-k8s.io/pod-group": group, "apps.kubernetes.io/pod-index": str(rank)}
    spec = {"schedulerName": "topolane", "containers": [container(8)]}
    return {"metadata": {"name": f"{group}-{rank}", "labels": labels}, "spec": spec}


def crd() -> Body:
    """The PodGroup of scheduler-plugins."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"}
    # The API server wants this of groups whose names end in k8s.io.
    notes = {"api-approved.kubernetes.io": "unapproved, of a test"}
    spec = {"group": "scheduling.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "podgroups.scheduling.x-k8s.io", "annotations": notes}, "spec": spec}


def kind_of(definition: Body) -> Body:
    spec = definition["spec"]
    return {"apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}", "kind": spec["names"]["kind"]}


def allowed(plane: ControlPlane, kubeconfig: Path, method: str, path: str) -> int:
    """The code of the answer to that user."""
    token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = None if method == "GET" else b"{}"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
    request = urllib.request.Request(
        f"https://127.0.0.1:{plane.port}{path}", data=data, headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(request, context=plane.tls, timeout=DEADLINE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def refusals(log: str) -> list[str]:
    return [line for line in log.splitlines() if "is forbidden" in line][:5]
