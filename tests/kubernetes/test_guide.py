"""docs/guides/kubernetes.md: its Job is placed as it says, its commands and alerts are those that there are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from control_plane import LABELS, ControlPlane, missing
from waiting import until

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "kubernetes.md").read_text()
CODE = "import sys; from topolane.cli import main; sys.exit(main())"
yaml = pytest.importorskip("yaml", reason="PyYAML is missing")


def test_files_and_alerts_of_the_guide_are_there() -> None:
    """Each path of the repository exists, and each alert rule has a line in the guide and the other way round."""
    for path in re.findall(r"\b((?:deploy|examples|tests)/[\w./-]+\w)", GUIDE):
        assert (ROOT / path).exists(), path
    rules = yaml.safe_load((ROOT / "examples" / "kubernetes" / "topolane-alerts.yml").read_text())["groups"][
        0
    ]["rules"]
    assert {rule["alert"] for rule in rules} == set(re.findall(r"`(TopolaneKubernetes\w+)`", GUIDE))
    assert all(rule["annotations"]["summary"].endswith(".") and rule["labels"]["severity"] for rule in rules)


def test_options_of_the_guide_are_there() -> None:
    """Each `topolane k8s` command in the guide knows the options that stand there."""
    for line in re.findall(r"^topolane (k8s .*)$", GUIDE, re.MULTILINE):
        words = line.split()
        done = subprocess.run(
            [sys.executable, "-c", CODE, *words[:2], "--help"], capture_output=True, text=True
        )
        assert done.returncode == 0, line
        assert all(word in done.stdout for word in words if word.startswith("--")), line


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_job_of_the_guide_runs_isolated(empty: ControlPlane) -> None:
    """Its 16 pods get a rack, in the order of their indices, and explain says what the guide prints."""
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    empty.post("/apis/batch/v1/namespaces/default/jobs?fieldValidation=Strict", yaml.safe_load(text))

    def nodes() -> list[str]:
        pods = empty.get("/api/v1/namespaces/default/pods?labelSelector=job-name%3Dtrain")["items"]
        rank = lambda pod: int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
        found = [pod["spec"].get("nodeName", "") for pod in sorted(pods, key=rank)]
        return found if len(found) == 16 and all(found) else []

    placed = until(nodes, "16 pods have nodes")
    assert placed == sorted(placed) and len({int(node[1:]) // 16 for node in placed}) == 1
    words = [
        "k8s",
        "explain",
        "default/train",
        "--kubeconfig",
        str(empty.kubeconfig),
        "--labels",
        ",".join(LABELS),
    ]
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"```text\n(Group default/train runs.*?)```", GUIDE, re.DOTALL)
    same = lambda line: re.sub(r"n\[\d\d-\d\d\]|since \S+|in r\d", "", line)
    assert list(map(same, done.stdout.splitlines())) == list(map(same, shown.splitlines())), done.stdout
