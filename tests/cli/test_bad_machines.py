"""Bad descriptions of GPU machines, in every format: one sentence with file, line and value, exit code 2, nothing written."""

from __future__ import annotations

import gzip
import json

import pytest

SITE = 'name = "m"\n[[site]]\nname = "s"\nchildren = [4]\nnodes = "n[1-4]"\n'
BLOCKS = "- topology: t\n  block:\n    blocks:\n"
FLAT = "- topology: t\n  flat: true\n"
TIER = "fabric.topograph.run/tier-0"
ABOVE = "fabric.topograph.run/tier-1"
DOMAIN = "accelerator.topograph.run/domain"
OLD = "network.topology.nvidia.com/leaf"
OPENB = "sn,cpu_milli,memory_mib,gpu,model\n"
NESTED = 10_000
MANY = ", ".join(f"r{number} = 1" for number in range(65))


def nodes(*labels: dict[str, str], gpus: str = "4") -> str:
    """Nodes a, b, ... as kubectl prints them."""
    items = [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": each},
            "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": gpus}},
        }
        for name, each in zip("abc", labels)
    ]
    return '{"kind": "List", "items": [\n' + ",\n".join(map(json.dumps, items)) + "\n]}\n"


def domains(*pairs: tuple[str, str]) -> str:
    return SITE + "".join(f'[[domain]]\nname = "{name}"\nnodes = "{hosts}"\n' for name, hosts in pairs)


def model(second: str) -> str:
    """A machine as topograph's tests describe one."""
    first = "- {switch: l, nodes: ['a[1-2]'], annotations: {accelerator.topology.test/domain: d1}}"
    return f"switches:\n  l: {{}}\nblocks:\n{first}\n- {{switch: l, {second}, annotations: {{accelerator.topology.test/domain: d2}}}}\n"


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        # A node in two domains.
        ("m.toml", domains(("a", "n[1-2]"), ("b", "n[2-3]")), 11, '"n2", which is in a domain of line 8'),
        ("g.yaml", model("nodes: ['a[2-3]']"), 5, '"a2" stands on line 4 already'),
        # A domain without nodes.
        ("m.toml", domains(("a", "n1"), ("b", "")), 11, 'domain "b" has no nodes'),
        ("t.yaml", f"{BLOCKS}    - {{block: a}}\n", 4, 'block "a" has no nodes'),
        ("g.yaml", model("nodes: []"), 5, '"d2" has no nodes'),
        # Names that stand twice.
        ("m.toml", SITE.replace("n[1-4]", "n[1-3],n1"), 5, 'nodes names "n1" twice'),
        ("m.toml", domains(("a", "n1"), ("a", "n2")), 10, 'domain "a" stands on line 7'),
        ("t.yaml", FLAT + FLAT, 3, '"t" stands on line 1 already'),
        ("n.csv", f"{OPENB}a,1000,1,0,\na,1000,1,0,\n", 3, '"a" stands on line 2 already'),
        # Labels that contradict each other.
        ("k.json", nodes({TIER: "l", ABOVE: "x"}, {TIER: "l", ABOVE: "y"}), 3, '"l" hangs on "y"'),
        (
            "k.json",
            nodes({TIER: "l", OLD: "m"}),
            2,
            'contradict each other: fabric.topograph.run/tier-0 is "l"',
        ),
        # Counts that are none.
        ("m.toml", f"{SITE}[node]\nresources = {{ gpu = 0.5 }}\n", 7, "0.5"),
        ("m.toml", f"{SITE}[node]\nresources = {{ gpu = -1 }}\n", 7, "-1 is not a count"),
        ("m.toml", f"{SITE}[node]\nresources = {{ gpu = 2, 'gpu:a' = 3 }}\n", 7, "2 are fewer than the 3"),
        # GPUs, rails and cables that no machine can have.
        ("m.toml", f"{SITE}[node]\nmemory = 1\nnics = 0\n", 8, "nics of a node must be at least 1, not 0"),
        ("m.toml", f"{SITE}[node]\nlatency = -1.0\n", 7, "latency of a node must be a number from 0, not -1"),
        (
            "m.toml",
            f'{SITE}[[node-kind]]\nnodes = "n1"\nresources = {{ {MANY} }}\n',
            8,
            "resource r7 is one too many: at most 64",
        ),
        (
            "m.toml",
            f"{SITE}[node]\nsockets = 65536\ncores-per-socket = 65536\n",
            8,
            "at most 65535 on 65536 sockets, not 65536",
        ),
        ("m.toml", f"{SITE}parents = [2000000]\n", 6, "more than 1048576 switches"),
        ("m.toml", f"{SITE}parents = [2]\ncables = [40000]\n", 7, "more than 65536 cables for 4 nodes"),
        (
            "m.toml",
            f"{SITE}bandwidth = [0.0]\n",
            6,
            'bandwidth of level 1 of site "s" must be above 0, not 0',
        ),
        ("m.toml", f"{SITE}bandwidth = nan\n", 6, "must be above 0, not NaN"),
        ("m.toml", f"{SITE}missing = [\n[0, 4, 0, 0, 0],\n]\n", 7, "group 4, switch 0, parent 0, cable 0"),
        (
            "m.toml",
            f"{SITE}parents = [2]\nmissing = [[0, 3, 0, 2, 0]]\n",
            7,
            "parent 2, cable 0) names a place",
        ),
        ("m.toml", f'{SITE}[[site]]\nname = "s"\nchildren = [1]\n', 6, 'site "s" stands on line 2 already'),
        (
            "m.toml",
            f'{SITE}[[wan]]\nbetween = ["s", "t"]\nlatency = 1.0\nbandwidth = 1.0\n',
            6,
            'names site "t", which',
        ),
        (
            "m.toml",
            f'{SITE}[[wan]]\nbetween = ["s", "s"]\nlatency = 1.0\nbandwidth = 1.0\n',
            6,
            "must join two sites",
        ),
        ("k.json", nodes({DOMAIN: "d"}, gpus="0.5"), 2, '"0.5", not a number of GPUs'),
        ("n.csv", f"{OPENB}a,1000,1,-1,\n", 2, 'gpu "-1" is not a number'),
        ("t.conf", "BlockName=a Nodes=n1\nBlockSizes=-1\n", 2, 'block size "-1"'),
        # Documents that try to exhaust the reader.
        ("t.yaml", f"{FLAT}- &a\n  topology: u\n- *a\n", 5, "aliases are not read"),
        ("k.json", '{"kind": "List", "items": ' + "[" * NESTED + "]" * NESTED + "}", 1, "recursion limit"),
        ("k.json", nodes({DOMAIN: "d\0"}), 2, "control character"),
    ],
)
def test_a_bad_machine_is_one_sentence_with_its_line(topolane, write, name, text, line, says):
    write(name, text)
    topolane.refused(
        "machine", "convert", name, "--to", "toml", "--out", "out.toml", says=(f"{name}:{line}: ", says)
    )


def test_a_file_that_breaks_off_is_refused(topolane, write):
    """A gzipped file that is cut, and one that is empty."""
    write("k.json.gz", gzip.compress(nodes({DOMAIN: "d"}).encode())[:40])
    topolane.refused("machine", "check", "k.json.gz", says="k.json.gz: a damaged gzip archive")
    write("t.yaml", "")
    topolane.refused("machine", "check", "t.yaml", says="t.yaml: the file is empty")


def test_a_file_with_crlf_is_read(topolane, write):
    """Lines may end as Windows ends them."""
    write("t.yaml", f"{BLOCKS}    - {{block: a, nodes: 'n[1-2]'}}\n".replace("\n", "\r\n"))
    done = topolane.run("machine", "check", "t.yaml")
    assert done.returncode == 0 and "2 nodes" in done.stdout
