"""Policies that an installed distribution offers: a real wheel, installed by pip into a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import DEADLINE

MAIN = "import sys; from topolane.cli import main; sys.argv[0] = 'topolane'; sys.exit(main())"
POLICIES = """
import numpy, topolane
class Highest(topolane.Policy):
    name = "highest-free"
    def choose(self, request, state):
        return numpy.flatnonzero(state.free)[::-1][: request.nodes]
class Renamed(Highest):
    name = "another-name"
"""
OFFERED = """[topolane.policies]
highest-free = our_policies:Highest
other-name = our_policies:Renamed
absent = our_policies:Absent
number = our_policies:POLICIES
broken = our_broken_policies:Policy
isolated = our_policies:Highest
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the distribution our-policies."""
    pytest.importorskip("wheel", reason="the Python package wheel is missing")
    folder = tmp_path_factory.mktemp("plugin")
    source, info = folder / "source", folder / "source" / "our_policies-1.0.dist-info"
    info.mkdir(parents=True)
    (source / "our_policies.py").write_text(POLICIES + "POLICIES = 7\n")
    (source / "our_broken_policies.py").write_text("raise SystemExit('line one\\nline two')\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-policies\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (info / "entry_points.txt").write_text(OFFERED)
    for words in (
        ["wheel", "pack", str(source), "--dest-dir", str(folder)],
        ["pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder / "site")]
        + [str(folder / "our_policies-1.0-py3-none-any.whl")],
    ):
        subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    return folder / "site"


def run(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `topolane` where the distribution is installed."""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, timeout=DEADLINE
    )


COMPARE = (
    "compare",
    "--machine",
    "fat-tree(radix=4)",
    "--workload",
    "cab-aug",
    "--limit",
    "40",
    "--nodes-x",
    "0.01",
)


def test_a_policy_of_a_plugin_goes_by_its_name(installed: Path) -> None:
    """Its runs, also in processes of their own, are reported with those of a built-in policy; `place` chooses its nodes."""
    words = (
        "--policies",
        "first-fit,highest-free",
        "--scenarios",
        "none",
        "--no-report",
        "--jobs",
        "2",
        "--json",
    )
    done = run(installed, *COMPARE, *words)
    assert done.returncode == 0, done.stderr
    assert [one["policy"] for one in json.loads(done.stdout)] == ["first-fit", "highest-free"]
    listed = run(installed, "policies")
    assert "highest-free" in listed.stdout and "our-policies (our_policies:Highest)" in listed.stdout


def test_a_run_of_a_plugin_that_has_changed_is_repeated(installed: Path, tmp_path: Path) -> None:
    """With --resume, the code of a plug-in's policy is one of the inputs of a run."""
    words = (*COMPARE, "--policies", "highest-free", "--jobs", "1", "--no-report", "--resume", str(tmp_path))
    assert run(installed, *words).returncode == 0
    assert "1 run kept from before\n" in run(installed, *words).stderr
    module = installed / "our_policies.py"
    module.write_text(module.read_text() + "# changed\n")
    assert "0 runs kept from before; 1 other there not used" in run(installed, *words).stderr


def test_a_live_driver_asks_the_policy_of_a_plugin(installed: Path) -> None:
    """The shadow of a live system resolves the operator's name as the simulator does. A name that users of the cluster may
    have written stands for a policy of the engine only.
    """
    code = """
import topolane
from topolane import InputError
from topolane.cluster.hypothetical import Hypothetical
from topolane.policy import resolve
machine = topolane.machine("fat-tree(radix=4)")
Hypothetical(machine, resolve("highest-free"), None)
try:
    Hypothetical(machine, "highest-free", None)
except InputError:
    pass
else:
    raise SystemExit("a user's word is loaded")
print(topolane.State(machine).place(resolve("highest-free"), 2).nodes)
"""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert (done.stdout, done.returncode) == ("[15, 14]\n", 0), done.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent", "policy 'absent' of the plug-in our-policies cannot be loaded: AttributeError: "),
        ("broken", "policy 'broken' of the plug-in our-policies cannot be loaded: SystemExit: line one"),
        ("number", "policy 'number' of the plug-in our-policies is not a subclass of topolane.Policy"),
        ("other-name", "policy 'other-name' of the plug-in our-policies calls itself 'another-name'"),
        ("none-such", "unknown policy 'none-such'"),
    ],
)
def test_a_faulty_plugin_is_one_sentence(installed: Path, name: str, sentence: str) -> None:
    done = run(installed, *COMPARE, "--policies", name, "--no-report")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert sentence in done.stderr


def test_a_built_in_name_stays_built_in(installed: Path) -> None:
    """A plug-in that takes a built-in name is not used, and is not listed."""
    done = run(installed, "policies", "--json")
    found = [one["kind"] for one in json.loads(done.stdout) if one["name"] == "isolated"]
    assert "policy of a plug-in" not in found and found
