"""What a file or an argument can do to a command that reads it: no more than end it in one sentence."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import DEADLINE

SCRIPT = Path(sys.executable).parent / "topolane"
CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
REPEATED = {
    "continued.conf": "SwitchName=a \\\n" * 1000,
    "never-closed.outages.csv": 'name,from,until\n"' + "leaf0,,\n" * 2001,
}
"""Files of the corpus that repeat one line."""
GIB = 1 << 30
MEMORY = 2 * GIB
"""Of address space, of which interpreter and libraries take half a gibibyte."""
TOY = 'name = "toy"\n[[site]]\nname = "core"\nchildren = [4, 2, 2]\nparents = [1, 2, 2]\n'
LOG = "id,submit,run,nodes\n1,0,10,2\n2,5,10,2\n"
JOBS = '{"running": [{"id": 1, "nodes": "cab[1-4]", "pattern": "alltoall"}]}'
ESCAPES = "\x1b]0;title\x07\x1b[31mred"


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(directory: Path, *arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A command, its memory limited."""
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        cwd=directory,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        input=stdin,
        capture_output=True,
        timeout=DEADLINE,
        preexec_fn=limit,
    )


def refused(done: subprocess.CompletedProcess[bytes], *says: str) -> str:
    """Exit code 2 and one printable sentence of bounded length."""
    assert done.returncode == 2, done
    (sentence,) = done.stderr.decode().splitlines()
    assert sentence.startswith("topolane: ") and sentence.isprintable() and len(sentence) < 1300, sentence
    for part in says:
        assert part in sentence
    # The file was refused, not the command line of this test.
    assert "--help" not in sentence or "Got unexpected" not in sentence and "Missing" not in sentence, (
        sentence
    )
    return sentence


def write(directory: Path, name: str, content: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_line_without_end(tmp_path):
    """A user who packs a line of three gigabytes into three megabytes cannot fill the memory with it."""
    part = gzip.compress(b"1 " * (32 << 20))
    write(tmp_path, "log.swf.gz", part * 48)
    refused(
        run(tmp_path, "workload", "show", "--trace", "log.swf.gz"), "log.swf.gz:1: the line is longer than"
    )
    quoted = gzip.compress(b'id,submit,run,nodes\n1,0,1,"') + gzip.compress(b"1,0,1,1\n" * (8 << 20)) * 48
    write(tmp_path, "log.csv.gz", quoted)
    refused(
        run(tmp_path, "workload", "show", "--trace", "log.csv.gz"), "log.csv.gz:2: the line is longer than"
    )


@pytest.mark.parametrize(
    ("site", "says"),
    [
        ("children = [4, 2, 2]\nparents = [1, 1000000, 2]", "more than 1048576 switches"),
        ("children = [4, 2]\ncables = [1, 100000000]", "more than 65536 cables for 8 nodes"),
        (f"children = [{'1, ' * 15}1000000]", "more than 1048576 switches"),
        ('children = [1]\n[[site]]\nname = "b"\nchildren = [1, 1000001]', "make 1000001 nodes"),
        (
            f"children = [{'1, ' * 15}1]\n" + '[[site]]\nname = "b"\nchildren = [1, 99999]',
            "more than 1048576 switches",
        ),
        (f'children = [1000, 1000]\nnodes = "{"n" * 240}[1-1000000]"', "letters"),
    ],
)
def test_a_small_file_of_a_large_machine(tmp_path, site, says):
    """A user who describes a machine in a few lines cannot fill the memory with its switches, cables or names."""
    write(tmp_path, "m.toml", f'name = "m"\n[[site]]\nname = "a"\n{site}\n')
    refused(run(tmp_path, "machine", "show", "m.toml"), "m.toml", says)
    done = run(tmp_path, "machine", "convert", "m.toml", "--to", "ibnetdiscover")
    refused(done, "m.toml", says)


def test_sites_that_each_name_a_million_nodes(tmp_path):
    """A user who lists many sites of a million nodes each cannot fill the memory before they are counted."""
    sites = "".join(
        f'[[site]]\nname = "s{i}"\n[[site.switch]]\nname = "l"\nnodes = "s{i}n[1-1000000]"\n'
        for i in range(20)
    )
    write(tmp_path, "m.toml", f'name = "m"\n{sites}')
    refused(run(tmp_path, "machine", "check", "m.toml"), "m.toml:7: the machine has more than 1000000 nodes")


DEVICES = [
    ("machine", "show", "/dev/zero"),
    ("machine", "show", "/dev/zero", "--format", "toml"),
    ("traffic", "/dev/zero"),
    ("place", "--machine", "cab", "/dev/zero"),
    ("links", "--machine", "cab", "--jobs", "/dev/zero"),
    ("links", "--machine", "/dev/zero", "--jobs", "/dev/zero", "--routing", "/dev/zero"),
    ("simulate", "--machine", "cab", "--workload", "exp-3", "--limit", 5, "--outages", "/dev/zero"),
    ("workload", "show", "--trace", "/dev/zero"),
    ("routes", "--machine", "cab", "--state", "/dev/zero", "--out", "x"),
    ("calibrate", "--from", "/dev/zero"),
    ("map", "--machine", "cab", "--traffic", "/dev/zero"),
]


@pytest.mark.parametrize("arguments", DEVICES, ids=lambda arguments: " ".join(map(str, arguments[:2])))
def test_a_device_that_never_ends(tmp_path, arguments):
    """A user who names a device that never ends cannot fill the memory, nor see a traceback."""
    refused(run(tmp_path, *arguments))


def test_a_stream_that_never_ends(tmp_path):
    """A user who pipes a stream that never ends into a command cannot fill the memory with it."""
    for arguments in (("place", "--machine", "cab", "-"), ("machine", "check", "/dev/stdin")):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
            done = subprocess.run(
                [SCRIPT, *arguments],
                stdin=endless.stdout,
                capture_output=True,
                timeout=DEADLINE,
                preexec_fn=limit,
            )
            assert endless.stdout is not None
            endless.stdout.close()
        refused(done)


def test_pipes_are_read_as_files_are(tmp_path):
    """A pipe goes on being as good as a file: bounds must not refuse it."""
    assert (
        run(tmp_path, "machine", "check", "/dev/stdin", "--format", "toml", stdin=TOY.encode()).returncode
        == 0
    )
    done = run(tmp_path, "place", "--machine", "cab", "-", stdin=b'{"request": {"nodes": 4}}')
    assert done.returncode == 0 and b"nodes" in done.stdout
    done = run(tmp_path, "workload", "show", "--trace", "/dev/stdin", stdin=LOG.encode())
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "m.toml",
            'name = "m"\n[[site]]\nname = "a\\u001b[31m"\nchildren = [2, 2]\n',
            'm.toml:3: name "a\\u{1b}[31m" holds a control character',
        ),
        ("m.toml", 'name = """m\nm"""\n[[site]]\nname = "a"\nchildren = [2, 2]\n', "m.toml:1:"),
        (
            "m.toml",
            'name = "m"\n[[site]]\nname = "a"\nchildren = [2, 1]\nnodes = "n\\u001b[1-2]"\n',
            "m.toml:5:",
        ),
        ("m.toml", 'name = "m"\n[[site]]\nname = "a\\u202eb"\nchildren = [2, 2]\n', "m.toml:3:"),
        (
            "topology.conf",
            f"SwitchName=a{ESCAPES} Nodes=n[1-4]\n",
            "topology.conf:1: SwitchName holds a control",
        ),
        ("topology.conf", f"SwitchName=a Nodes=n{ESCAPES}\n", "topology.conf:1: Nodes holds a control"),
    ],
)
def test_names_with_escapes(tmp_path, name, content, says):
    """A user who is given a machine file cannot have the terminal obey a name in it."""
    write(tmp_path, name, content)
    refused(run(tmp_path, "machine", "show", name), says)
    refused(run(tmp_path, "machine", "check", name), says)


def test_descriptions_of_a_subnet_with_escapes(tmp_path):
    """A host that describes itself to the subnet manager with escapes cannot reach a terminal with them."""
    net = subprocess.run(
        [SCRIPT, "machine", "convert", "fat-tree(radix=2)", "--to", "ibnetdiscover"], capture_output=True
    ).stdout.decode()
    write(
        tmp_path, "net.ibnetdiscover", net.replace("leaf0", f"leaf{ESCAPES}").replace("tree1", f"t{ESCAPES}")
    )
    for arguments in (("machine", "show"), ("machine", "convert", "--to", "slurm")):
        done = run(tmp_path, *arguments, "net.ibnetdiscover")
        assert done.returncode in (0, 2)
        assert b"\x1b" not in done.stdout + done.stderr and b"\x07" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [
        ("s.json", json.dumps({"running": [{"id": ESCAPES, "nodes": "cab[1-4]"}]}), ("links", "--jobs")),
        (
            "s.json",
            json.dumps({"running": [{"id": ESCAPES, "nodes": "cab[1-4]"}]}),
            ("routes", "--out", "x", "--state"),
        ),
        ("j.csv", f"id,nodes\n{ESCAPES},cab1\n", ("links", "--jobs")),
        (
            "log.swf",
            f"; Partition: 1 {ESCAPES}\n{'1 ' * 18}\n",
            ("workload", "show", "--partition", "nope", "--trace"),
        ),
        (f"log{ESCAPES}.csv", LOG, ("workload", "show", "--trace")),
        (f"log{ESCAPES}.csv", "id,nodes\n", ("workload", "show", "--trace")),
        (f"m{ESCAPES}.conf", "SwitchName=a Nodes=n[1-4]\n", ("machine", "show")),
    ],
)
def test_ids_partitions_and_file_names_with_escapes(tmp_path, name, content, arguments):
    """A user who names jobs, partitions or files with escapes cannot have another's terminal obey them."""
    write(tmp_path, name, content)
    done = run(tmp_path, *arguments, name)
    assert done.returncode in (0, 2), done
    assert b"\x1b" not in done.stdout + done.stderr and b"\x07" not in done.stdout + done.stderr
    if done.returncode == 2:
        refused(done)


LONG = "x" * 3000


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [
        ("m.toml", f"{LONG} = 1\n", ("machine", "check")),
        ("m.toml", f'name = "{LONG}"\n[[site]]\nname = "a"\nchildren = [2, 2]\n', ("machine", "check")),
        ("topology.conf", f"SwitchName=a {LONG}=b\n", ("machine", "check")),
        ("topology.conf", f"SwitchName=a Switches={LONG}\n", ("machine", "check")),
        ("s.json", json.dumps({LONG: 1}), ("place", "--machine", "cab")),
        ("s.json", json.dumps({"request": {"nodes": LONG}}), ("place", "--machine", "cab")),
        ("t.csv", f"from,to,bytes\n0,1,{LONG}\n", ("traffic",)),
        ("t.csv", f"{LONG},to,bytes\n", ("traffic",)),
        ("log.csv", f"id,submit,run,nodes\n{LONG},0,1,1\n", ("workload", "show", "--trace")),
        (
            "o.csv",
            f"name,from,until\nleaf0,{LONG},\n",
            ("simulate", "--workload", "exp-3", "--limit", 5, "--outages"),
        ),
        (
            "o.csv",
            f"name,from,until\n{LONG},,\n",
            ("simulate", "--workload", "exp-3", "--limit", 5, "--outages"),
        ),
    ],
)
def test_long_values_in_errors(tmp_path, name, content, arguments):
    """A user who is refused for a value of thousands of letters does not get all of them back."""
    write(tmp_path, name, content)
    sentence = refused(run(tmp_path, *arguments, name))
    assert "x" * 257 not in sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ("machine", "show", LONG),
        ("machine", "show", ESCAPES),
        ("simulate", "--policy", LONG),
        ("simulate", "--policy", ESCAPES),
        ("simulate", "--workload", ESCAPES),
        ("simulate", "--queue", LONG),
        (LONG,),
        (ESCAPES,),
        ("links", "--jobs", "x", "--routing", ESCAPES),
        ("place", ESCAPES),
        ("machine", "check", ESCAPES + "/x"),
    ],
)
def test_arguments_in_errors(tmp_path, arguments):
    """A script that passes on a foreign argument cannot have the terminal obey it or fill it."""
    sentence = refused(run(tmp_path, *arguments))
    assert "x" * 257 not in sentence


EVERY = """
import json, os, resource, sys, tempfile
from topolane import cli
arguments, files, memory = json.loads(sys.stdin.read())
answers = {}
for file in files:
    with tempfile.TemporaryFile() as said:
        if (child := os.fork()) == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            sys.argv = ["topolane", *[file if one == "FILE" else one for one in arguments]]
            try:
                cli.main()
            except SystemExit as error:
                code = error.code or 0
            except BaseException:
                import traceback
                traceback.print_exc()
                code = 99
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        answers[file] = [os.waitstatus_to_exitcode(status), said.read().decode(errors="replace")[-3000:]]
print(json.dumps(answers))
"""
READERS = {
    "machine": ("machine", "check", "FILE"),
    "toml": ("machine", "check", "FILE", "--format", "toml"),
    "topology.conf": ("machine", "check", "FILE", "--format", "slurm"),
    "ibnetdiscover": ("machine", "check", "FILE", "--format", "ibnetdiscover"),
    "forwarding tables": ("links", "--machine", "NET", "--routing", "FILE", "--jobs", "JOBS"),
    "tables of before": (
        "routes",
        "--machine",
        "cab",
        "--state",
        "JOBS",
        "--out",
        "out",
        "--previous",
        "FILE",
    ),
    "traffic": ("traffic", "FILE"),
    "log": ("workload", "show", "--trace", "FILE"),
    "log replayed": (
        "simulate",
        "--machine",
        "cab",
        "--trace",
        "FILE",
        "--policy",
        "recorded",
        "--limit",
        "50",
    ),
    "outages": ("simulate", "--machine", "TOY", "--trace", "LOG", "--outages", "FILE"),
    "jobs": ("links", "--machine", "cab", "--jobs", "FILE"),
    "state": ("place", "--machine", "cab", "FILE"),
    "owned links": ("routes", "--machine", "cab", "--state", "FILE", "--out", "out"),
    "measurements": ("calibrate", "--from", "FILE", "--out", "calibration"),
    "watched program": ("mpi", "show", "FILE"),
}


@pytest.mark.parametrize("reader", READERS)
def test_the_corpus_against_every_reader(tmp_path, reader):
    """A user who gives any command any file of the corpus gets an answer or one sentence, within the memory."""
    net = subprocess.run(
        [SCRIPT, "machine", "convert", "cab", "--to", "ibnetdiscover"], capture_output=True
    ).stdout
    given = {
        "NET": write(tmp_path, "net.ibnetdiscover", net),
        "TOY": write(tmp_path, "toy.toml", TOY),
        "LOG": write(tmp_path, "log.csv", LOG),
        "JOBS": write(tmp_path, "jobs.json", JOBS),
    }
    arguments = [str(given.get(one, one)) for one in READERS[reader]]
    corpus = [*CORPUS, *(write(tmp_path, name, text) for name, text in REPEATED.items())]
    done = subprocess.run(
        [sys.executable, "-c", EVERY],
        input=json.dumps([arguments, [str(file) for file in corpus], MEMORY]),
        cwd=tmp_path,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    wrong = {}
    for file, (code, said) in json.loads(done.stdout).items():
        assert "--help" not in said, said
        one_sentence = said.startswith("topolane: ") and said.count("\n") == 1 and said[:-1].isprintable()
        if code not in (0, 1, 2) or "\x1b" in said or (code == 2 and not (one_sentence and len(said) < 1300)):
            wrong[Path(file).name] = (code, said[-600:])
    assert not wrong
