"""Bad input: one clear sentence, exit code 2, nothing written. `refused` checks all three."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).parent / "topolane"

SWF = "1 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n"
RUN = ("simulate", "--limit", 10, "--out", "out")
COMPARE = ("compare", "--limit", 10, "--jobs", 1, "--out", "out")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (*COMPARE, "--machine", "nope"),
            ("no machine and no file is called 'nope'", "cab", "fat-tree(radix=R"),
        ),
        ((*RUN, "--machine", "nope.toml"), "no machine and no file is called 'nope.toml'"),
        ((*RUN, "--machine", "fat-tree(radix=3)"), "radix must be even and from 2 to 128, not 3"),
        ((*RUN, "--machine", "fat-tree(radix=99999999999)"), '"99999999999" is not a whole number'),
        ((*RUN, "--machine", "fat-tree(pods=4)"), "no radix=R"),
        ((*RUN, "--policy", "nope"), ("unknown policy 'nope'", "first-fit", "isolated", "module:Class")),
        ((*COMPARE, "--policies", "isolated,nope"), ("unknown policy 'nope'", "first-fit")),
        ((*RUN, "--queue", "nope"), ('unknown queue "nope"', "fcfs", "easy", "conservative")),
        ((*COMPARE, "--queues", "easy,nope"), ('unknown queue "nope"', "fcfs")),
        ((*RUN, "--scenario", "fast"), ("no speed-up scenario 'fast'", "none, v1, v2")),
        (
            (*COMPARE, "--scenarios", "none,100"),
            ("no speed-up scenario '100'", "percentage from 0 to under 100"),
        ),
        ((*RUN, "--scenario", "nan"), "no speed-up scenario 'nan'"),
        ((*RUN, "--workload", "nope"), ("no workload 'nope'", "cab-aug", "no file of that name")),
        ((*RUN, "--workload", "exp-0"), "0 is no mean number of nodes"),
        ((*RUN, "--trace", "nope.swf"), "nope.swf: there is no such file"),
        ((*RUN, "--trace", "no/where"), "no/where: there is no such file"),
        ((*RUN, "--trace", "/tmp"), "/tmp: a directory, where a log is wanted"),
        ((*RUN, "--machine", "/tmp"), "/tmp: Is a directory"),
        ((*COMPARE, "--policies", ","), "nothing to run"),
        ((*RUN, "--workload", "cab-aug", "--trace", "a.swf"), "--workload and --trace both name a workload"),
        ((*RUN, "--squeeze", 0.5, "--load", 0.5), "squeeze and load both set"),
        ((*RUN, "--workload", "exp-2", "--load", 0.5), "no load can be set"),
        ((*COMPARE, "--executor", "mpi://x"), "'mpi://x' is neither dask://HOST:PORT nor dask://"),
        (("nope",), "No such command 'nope'"),
        (("machine", "convert", "cab"), "Missing option '--to'. Choose from: toml, slurm"),
        (("machine", "convert", "cab", "--to", "yaml"), "'yaml' is not one of"),
        (("simulate", "--nope"), "No such option"),
    ],
)
def test_unknown_names(topolane, arguments, says):
    topolane.refused(*arguments, says=says)


@pytest.mark.parametrize("option", ["--days", "--nodes-x", "--squeeze", "--load", "--default-walltime"])
@pytest.mark.parametrize("value", ["nan", "0", "-1", "inf", "ten"])
def test_numbers_that_mean_nothing(topolane, option, value):
    topolane.refused(*RUN, option, value, says=(option.strip("-").replace("default-", "")[:8],))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--at", value) for value in ("nan", "-1", "inf")),
        *(("--limit", value) for value in ("0", "-1", "1.5", "99999999999999999999")),
        *(("--seed", value) for value in ("-1", "18446744073709551616")),
        *(("--cores-per-node", value) for value in ("0", "99999999999")),
    ],
)
def test_numbers_out_of_range(topolane, option, value):
    topolane.refused(
        *RUN, option, value, says=(f"Invalid value for '{option}': ", value, "'topolane simulate --help'")
    )


SWF_ERRORS = {
    "no number": (SWF + SWF.replace("100", "1x0", 1), "log.swf:2: field 4 is '1x0', not a number"),
    "after comments": ("; Version: 2.2\n\n" + SWF.replace("4", "four", 1), "log.swf:3: field 5 is 'four'"),
    "too few fields": ("1 0 0\n", "log.swf:1:"),
    "a job twice": (SWF + SWF, ("log.swf:2:", "job 1 appears a second time")),
    "too many processors": (SWF.replace(" 4 ", " 99999999999 ", 1), ("log.swf:1:", "99999999999")),
    "a time beyond belief": (SWF.replace(" 100 ", " 1e300 ", 1), ("log.swf:1:", "1")),
    "a job number below zero": (SWF.replace("1", "-7", 1), ("log.swf:1:", "-7")),
    "nothing": ("", "log.swf: the file is empty"),
    "blanks": ("\n \n", "log.swf: the file is empty"),
    "no text": (b"\xff\xfe\x00", "log.swf: not a log known here: it is UTF-16 text"),
}


@pytest.mark.parametrize("case", SWF_ERRORS)
def test_swf_that_cannot_be_read(topolane, write, case):
    text, says = SWF_ERRORS[case]
    write("log.swf", text)
    topolane.refused(*RUN, "--trace", "log.swf", says=says)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("log.csv", "id,submit,run,nodes\n1,0,10,0\n", ("log.csv:2:", "nodes '0'")),
        ("log.csv", "id,submit,run,nodes\n1,0,10,99999999999\n", ("log.csv:2:", "'99999999999'")),
        ("log.csv", "id,submit,run,nodes\n1,0,-10,1\n", ("log.csv:2:", "-10")),
        ("log.csv", "id,submit,run,nodes\n1,0,10\n", "log.csv:2: 3 fields, where the header has 4"),
        ("log.csv", "id,submit,nodes\n1,0,1\n", ("log.csv:1:", "run")),
        ("log.csv", b"id,submit,run,nodes\n1,0,\xff,1\n", "log.csv:2: not UTF-8 text"),
        ("log.csv", "id,submit,run,nodes\n", "log.csv: a header line and no jobs"),
        ("log.txt", "Submit|Start|End|NNodes\nyesterday|x|y|1\n", ("log.txt:2:", "'x' is not a time")),
        ("log.txt", "Submit|Start|NNodes\n", ("log.txt:1:", "End")),
        ("log.txt", "hello\n", "log.txt: not a log known here"),
        ("log", b"\x00\x01\x02", "log: not a log known here"),
    ],
)
def test_other_logs_that_cannot_be_read(topolane, write, name, text, says):
    write(name, text)
    topolane.refused(*RUN, "--trace", name, says=says)


def test_gzip_that_breaks_off(topolane, write):
    lines = "".join(f"{number} {number * 7919 % 100_000} 0 {number % 977} 4\n" for number in range(1, 5000))
    lines = lines.replace(" 4\n", " 4 -1 -1 4 900 -1 1 1 1 1 1 1 -1 -1\n")
    whole = gzip.compress(lines.encode())
    write("log.swf.gz", whole[: len(whole) // 2])
    topolane.refused(
        "simulate", "--trace", "log.swf.gz", "--out", "out", says="the compressed data ends too early"
    )
    write("log.swf.gz", whole[:1000] + b"damaged" * 9 + whole[1063:])
    topolane.refused("simulate", "--trace", "log.swf.gz", "--out", "out", says="log.swf.gz:")
    write("log.swf.gz", gzip.compress(b""))
    topolane.refused(*RUN, "--trace", "log.swf.gz", says="the file is empty")


MACHINES = {
    "a cycle": ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", ("topology.conf:", "cycle")),
    "no such switch": ("SwitchName=a Switches=zz\n", ("topology.conf:1:", "zz")),
    "an unknown key": ("SwitchName=a Node=n1\n", ("topology.conf:1:", "unknown key Node")),
    "a bad hostlist": ("SwitchName=a Nodes=n[1-\n", ("topology.conf:1:", "n[1-")),
    "a huge hostlist": ("SwitchName=a Nodes=n[1-99999999999]\n", ("topology.conf:1:", "99999999999")),
    "nothing": ("", "topology.conf: the file is empty"),
    "no text": (b"SwitchName=\xff", "topology.conf: not UTF-8 text"),
    "something else": ("hello\n", 'topology.conf:1: "hello" is not of the form key=value'),
}


@pytest.mark.parametrize("case", MACHINES)
@pytest.mark.parametrize(
    "command", [("machine", "check"), ("machine", "show", "--json"), (*RUN, "--machine")]
)
def test_machines_that_cannot_be_read(topolane, write, case, command):
    text, says = MACHINES[case]
    write("topology.conf", text)
    topolane.refused(*command, "topology.conf", says=says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\n', ("x.toml:", "site")),
        ('name = "x"\n[[site]]\nname = "a"\nchildren = [4, -1]\n', ("x.toml:4:", "-1")),
        ('name = "x"\n[[site]]\nname = "a"\nchildren = [4, 4]\nparents = [1]\n', ("x.toml:5:", "parents")),
        ('name = "x"\nsizes = 3\n', ("x.toml:2:", "sizes")),
        ('name = "x\n', "x.toml:1:"),
        ('name = "x"\n[[site]]\nname = "a"\nchildren = [99999, 99999]\n', "x.toml:"),
    ],
)
def test_toml_that_is_no_machine(topolane, write, text, says):
    write("x.toml", text)
    topolane.refused("machine", "check", "x.toml", says=says)


def test_a_format_that_a_file_has_not(topolane, toy):
    topolane.refused("machine", "check", toy, "--format", "slurm", says="toy.toml:2:")


@pytest.mark.parametrize("out", ["taken", "taken/x", "/proc/x", "/proc/x/y", "/proc", "", "dangling"])
@pytest.mark.parametrize("command", [RUN, (*COMPARE,)])
def test_a_directory_that_cannot_be_written(topolane, write, out, command):
    write("taken", "mine")
    os.symlink("nowhere", topolane.directory / "dangling")
    # Before any work is done: the machine is not even looked for.
    topolane.refused(
        *command[:-2], "--machine", "nope", "--out", out, says=(f"--out {out}: cannot be written",)
    )
    assert (topolane.directory / "taken").read_text() == "mine"


@pytest.mark.parametrize("out", ["taken/x", "nowhere/x", "/proc/x", ".", ""])
def test_a_file_that_cannot_be_written(topolane, write, out):
    write("taken", "mine")
    topolane.refused(
        "machine", "convert", "cab", "--to", "toml", "--out", out, says=f"--out {out}: cannot be written"
    )
    topolane.refused("workload", "make", "exp-2", "--out", out, says=f"--out {out}: cannot be written")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_of_another_user(topolane):
    (topolane.directory / "closed").mkdir(mode=0o500)
    topolane.refused(*RUN[:-1], "closed", says="--out closed: cannot be written: Permission denied")
    topolane.refused(*RUN[:-1], "closed/x", says="--out closed/x: cannot be written: Permission denied")


def test_a_full_device_is_said(topolane):
    with open("/dev/full", "w") as full:
        done = subprocess.run([SCRIPT, "machine", "show", "cab"], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"topolane: standard output: No space left on device\n")


def test_more_runs_than_a_report_shows(topolane):
    many = (
        "--policies",
        "first-fit,random,scattered,slurm-tree,isolated",
        "--queues",
        "fcfs,easy,conservative",
    )
    says = "a report shows at most 20 runs, not 27: compare fewer, or give --no-report"
    topolane.refused(*COMPARE, *many, "--scenarios", "none,5,10,20,v1", says=says)


def test_an_error_late_in_the_work_leaves_nothing(topolane, write):
    write("log.csv", "id,submit,run,nodes\n" + "".join(f"{i},{i},10,1\n" for i in range(100)))
    write("late.py", LATE)
    for jobs in (1, 2):
        topolane.refused(
            *(
                "compare",
                "--trace",
                "log.csv",
                "--policies",
                "first-fit,late:Late",
                "--jobs",
                jobs,
                "--out",
                "a/b",
            ),
            says="policy Late raised ValueError: too late",
        )


LATE = """
import topolane

class Late(topolane.Policy):
    def choose(self, request, state):
        if request.id > 90:
            raise ValueError("too late")
        return [node for node, free in enumerate(state.free) if free][: request.nodes]
"""

POLICIES = """
import topolane

class Base(topolane.Policy):
    def choose(self, request, state):
        return self.answer(request.nodes)

class Few(Base):
    def answer(self, wanted): return list(range(wanted - 1))
class Twice(Base):
    def answer(self, wanted): return [0] * wanted
class Out(Base):
    def answer(self, wanted): return list(range(16, 16 + wanted))
class Negative(Base):
    def answer(self, wanted): return [-1] * wanted
class Text(Base):
    def answer(self, wanted): return "x" * wanted
class Number(Base):
    def answer(self, wanted): return wanted
class Halves(Base):
    def answer(self, wanted): return [0.5] * wanted
class Boom(Base):
    def answer(self, wanted): raise KeyError("boom\\nand more")
class Exits(Base):
    def answer(self, wanted): raise SystemExit(0)
class Busy(Base):
    def answer(self, wanted): return list(range(wanted))

class Wants(Base):
    def __init__(self, what): pass
class Abstract(topolane.Policy):
    pass
class Other:
    pass
def function(): pass
"""


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("own:Few", "policy Few named 1 nodes for a request of 2"),
        ("own:Twice", "policy Twice named node 0 for 2 of the request's slots, where 1 are free"),
        ("own:Busy", "policy Busy named node 0 for 1 of the request's slots, where 0 are free"),
        ("own:Out", "policy Out named node 16 for 1 of the request's slots, where 0 are free"),
        ("own:Negative", "policy Negative must answer with a list of node indices or None, not [-1, -1]"),
        ("own:Text", "must answer with a list of node indices or None, not 'xx'"),
        ("own:Number", "must answer with a list of node indices or None, not 2"),
        ("own:Halves", "must answer with a list of node indices or None, not [0.5, 0.5]"),
        ("own:Boom", ("policy Boom raised KeyError: 'boom", "own.py:23)")),
        ("own:Exits", "policy Exits raised SystemExit"),
        ("own:Wants", "policy 'own:Wants' cannot be loaded: TypeError"),
        ("own:Abstract", "policy 'own:Abstract' cannot be loaded: TypeError"),
        ("own:Other", "policy 'own:Other' is not a subclass of topolane.Policy"),
        ("own:function", "policy 'own:function' is not a subclass of topolane.Policy"),
        ("own:Nope", "policy 'own:Nope' cannot be loaded"),
        ("own:", "policy 'own:' cannot be loaded"),
        (":Few", "policy ':Few' cannot be loaded"),
        ("..own:Few", "policy '..own:Few' cannot be loaded"),
        ("nowhere:Few", "policy 'nowhere:Few' cannot be loaded: ModuleNotFoundError"),
        ("broken:Few", "policy 'broken:Few' cannot be loaded: SyntaxError"),
        ("leaves:Few", "policy 'leaves:Few' cannot be loaded: SystemExit"),
        ("same:Mine", "'first-fit' is that of a policy built in"),
    ],
)
def test_policies_that_are_none(topolane, write, toy, policy, says):
    write("own.py", POLICIES)
    write("broken.py", "def (\n")
    write("leaves.py", "import sys\nsys.exit(0)\n")
    write("same.py", "import topolane\nclass Mine(topolane.Policy):\n    name = 'first-fit'\n")
    write("log.csv", "id,submit,run,nodes\n1,0,10,2\n2,5,10,2\n")
    options = ("--machine", toy, "--trace", "log.csv", "--out", "out")
    topolane.refused("simulate", *options, "--policy", policy, says=says)
    if policy in ("own:Boom", "own:Nope"):
        topolane.refused("compare", *options, "--jobs", 2, "--policies", f"first-fit,{policy}", says=says)
        topolane.refused(
            "place", "--machine", toy, "--policy", policy, stdin='{"request": {"nodes": 2}}', says=says
        )


def test_a_policy_that_never_places_anything(topolane, write, toy, log):
    write(
        "never.py",
        "import topolane\nclass Never(topolane.Policy):\n    def choose(self, request, state): pass\n",
    )
    text = topolane("simulate", "--machine", toy, "--trace", log, "--policy", "never:Never")
    assert "skipped: 40 refused by the policy: never" in text
