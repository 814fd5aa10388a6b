"""What every command offers, and those that only look."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click import Context
from topolane import _engine
from topolane.cli import COMMANDS as OFFERED
from topolane.cli import cli

COMMANDS = [
    "",
    "compare",
    "simulate",
    "place",
    "map",
    "routes",
    "policies",
    "patterns",
    "traffic",
    "machine",
    "machine show",
    "machine convert",
    "machine check",
    "machine route",
    "workload",
    "workload show",
    "workload make",
    "workload convert",
    "workload import",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(topolane, command):
    text = topolane(*command.split(), "--help")
    assert text.startswith("Usage: topolane")
    # No user can use an option without a sentence.
    options = re.findall(r"^  (-\S.*)$", text, re.MULTILINE)
    assert options
    assert topolane(*command.split(), "-h") == text


def test_version_says_what_is_installed(topolane):
    """The first line is the package's version; the others name the build, what the engine offers and reads, and Python."""
    first, *others = topolane("--version").splitlines()
    assert first == f"topolane, version {version('topolane')}"
    facts = {line[:10].strip(): line[10:] for line in others}
    assert list(facts) == ["commit", "engine", "policies", "queues", "machines", "Slurm", "Python"]
    commit, profile = _engine.built()
    assert facts["commit"] == (commit or "not recorded by this build")
    assert facts["engine"].startswith(f"profile {profile or 'not recorded'}, ")
    assert facts["policies"] == str(len(_engine.policies()))
    assert facts["queues"].split(", ") == [name for name, _ in _engine.queues()]
    assert facts["machines"].split(", ") == [name for name, *_ in _engine.machine_formats()]
    assert facts["Python"].startswith(platform.python_version())


def test_a_group_without_a_command_lists_its_commands(topolane):
    done = topolane.run("machine")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(name in done.stderr for name in ("show", "convert", "check", "route"))


def test_start_up_imports_no_heavy_library():
    code = (
        "import sys, topolane.cli\n"
        "topolane.cli.cli(['policies'], standalone_mode=False)\n"
        "print([name for name in ('numpy', 'polars', 'matplotlib', 'jinja2', 'rich', 'distributed', 'httpx', 'yaml')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_and_version_import_no_command():
    """Both are asked for often and by people who wait: neither loads what some command needs."""
    for word in ("--help", "--version"):
        code = (
            "import sys, topolane.cli as line\n"
            f"line.cli([{word!r}], standalone_mode=False)\n"
            "print([name for name in sys.modules if name.startswith('topolane.cli.')])\n"
            "print([name for name in ('multiprocessing', 'concurrent.futures') if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-2:] == ["[]", "[]"], word


def test_help_says_of_each_command_what_it_says_itself():
    """The list of commands holds the first sentence of each, so that it can be shown without loading any."""
    for name, sentence in OFFERED.items():
        command = cli.get_command(Context(cli), name)
        assert command is not None
        assert (command.name, command.get_short_help_str(1000)) == (name, sentence)


def test_a_command_that_is_nearly_right_is_suggested(topolane):
    topolane.refused("compar", says="Did you mean 'compare'?")


def test_policies(topolane):
    listed = json.loads(topolane("policies", "--json"))
    assert all(set(one) == {"kind", "name", "summary"} and all(one.values()) for one in listed)
    names = {kind: [one["name"] for one in listed if one["kind"] == kind] for kind in ("policy", "queue")}
    assert names["policy"] == [name for name, _ in _engine.policies()]
    assert names["queue"] == [name for name, _ in _engine.queues()]
    assert {"first-fit", "slurm-tree", "isolated", "recorded"} <= set(names["policy"])
    text = topolane("policies")
    assert all(f"  {one['name']} " in text and one["summary"] in text for one in listed)


def test_machine_show(topolane, toy):
    shown = json.loads(topolane("machine", "show", toy, "--json"))
    assert (shown["name"], shown["nodes"]) == ("toy", 16)
    assert shown["node_names"] == "toy[1-16]"
    assert (shown["links"], shown["missing_cables"]) == (16 + 4 * 2 + 2 * 2 * 2, 0)
    assert [len(level) for level in shown["levels"]] == [4, 2, 1]
    assert shown["levels"][0][1] == {"name": "leaf1", "start": 4, "end": 8}
    assert "toy[1-16]" in topolane("machine", "show", toy)
    assert "leaf" in topolane("machine", "show", toy, "--lines", 3)
    assert "leaf" not in topolane("machine", "show", toy, "--lines", 2)


def test_machine_presets_are_listed_and_known(topolane):
    listed = json.loads(topolane("machine", "show", "--json"))
    assert [one["name"] for one in listed][:3] == ["cab", "pinot", "sc18-network"]
    assert all(one["summary"] in topolane("machine", "show") for one in listed)
    assert topolane("machine", "check", "cab").startswith("cab: 1,296 nodes, 3 levels of switches")
    assert "1,024 nodes" in topolane("machine", "check", "fat-tree(radix=16)")


@pytest.mark.parametrize("form", ["toml", "slurm", "ibnetdiscover", "ibsim-net"])
def test_machine_convert(topolane, toy, form):
    def output_of(*arguments: object) -> str:
        """What a command prints. What a format cannot say stands on standard error, a note each."""
        done = topolane.run("machine", *arguments)
        assert done.returncode == 0
        assert all(line.startswith("note: ") for line in done.stderr.splitlines())
        assert (done.stderr == "") == (form != "slurm")
        return done.stdout

    text = output_of("convert", toy, "--to", form)
    assert output_of("convert", toy, "--to", form, "--out", "machine.out") == ""
    out = topolane.directory / "machine.out"
    assert out.read_text() == text
    # A file that others can read, as any other program would leave it.
    assert out.stat().st_mode == toy.stat().st_mode
    if form != "ibsim-net":
        again = output_of("show", "machine.out", "--format", form, "--json")
        assert json.loads(again)["node_names"] == "toy[1-16]"
        assert output_of("check", "machine.out").split(":")[1].startswith(" 16 nodes")


def test_output_to_a_device_does_not_replace_it(topolane, toy):
    device = Path("/dev/null")
    topolane("machine", "convert", toy, "--to", "toml", "--out", device)
    assert device.is_char_device()


def test_workload_show(topolane, toy, log):
    facts = json.loads(topolane("workload", "show", "--trace", log, "--machine", toy, "--json"))
    assert list(facts) == [
        "name",
        "jobs",
        "span_hours",
        "load",
        "machine",
        "cores_per_node",
        "mean_nodes",
        "widest",
        "mean_run_hours",
        "without_walltime",
        "names_nodes",
        "left_out",
    ]
    assert (facts["name"], facts["jobs"], facts["widest"]) == ("log", 40, 9)
    assert facts["span_hours"] == pytest.approx(39 * 30 / 3600)
    work = sum((60 + 40 * (37 * i % 11)) * (1 + 7 * i % 9) for i in range(40))
    assert facts["load"] == pytest.approx(work / (16 * 39 * 30))
    assert (facts["left_out"], facts["names_nodes"], facts["without_walltime"]) == ({}, False, 0)
    text = topolane("workload", "show", "--trace", log, "--machine", toy)
    assert re.search(r"^skipped +nothing$", text, re.MULTILINE)


def test_workload_presets_are_listed(topolane):
    listed = json.loads(topolane("workload", "show", "--json"))
    assert "cab-aug" in [one["name"] for one in listed]
    assert all(one["summary"] in topolane("workload", "show") for one in listed)


@pytest.mark.parametrize("form", ["swf", "csv"])
def test_workload_make_and_convert(topolane, toy, form):
    done = topolane.run(
        "workload", "make", "exp-2", "--limit", 30, "--machine", toy, "--to", form, "--out", f"made.{form}"
    )
    assert done.returncode == 0 and "beyond the limit" in done.stderr
    made = (topolane.directory / f"made.{form}").read_text()
    again = topolane("workload", "convert", f"made.{form}", "--machine", toy, "--to", form)
    body = [line for line in made.splitlines() if not line.startswith(";")]
    assert [line for line in again.splitlines() if not line.startswith(";")] == body
    shown = topolane("workload", "show", "--trace", f"made.{form}", "--machine", toy, "--json")
    assert json.loads(shown)["jobs"] == 30


def test_a_reader_that_goes_away_ends_the_command_quietly(topolane):
    command = [
        Path(sys.executable).parent / "topolane",
        "machine",
        "convert",
        "sc18-network",
        "--to",
        "ibnetdiscover",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
