"""A matrix that was watched is a traffic file: all that takes one takes it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mpis import AROUND, TOPOLANE, Mpi
from topolane._engine import InputError, Machine, Profile, Traffic
from topolane.mpi import matrix
from topolane.nova import traffic as nova_traffic
from topolane.report import traffic_matrix
from topolane.traffic import read_traffic
from waiting import DEADLINE

# Two leaves of two hosts: ranks 0 and 1 fill the first in their order, 2 and 3 the second.
TREE = [(["site", "pod", f"leaf{leaf}"], [f"h{2 * leaf + i}" for i in range(2)]) for leaf in range(2)]


@pytest.fixture(scope="module")
def watched(mpi: Mpi, kernels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of `between`: ranks 0 and 2 speak to each other, and 1 and 3."""
    out = tmp_path_factory.mktemp("watched") / "pairs.csv"
    command = [*TOPOLANE, "mpi", "run", "--out", str(out), "--", *mpi.launch(kernels, "between", 10)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | AROUND, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    return out


def said(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOPOLANE, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE)


def test_traffic(watched: Path) -> None:
    """`topolane traffic` reads it: four pairs of 10 messages and 40 bytes."""
    figures = json.loads(said("traffic", watched, "--json").stdout)
    assert (figures["ranks"], figures["messages"], figures["bytes"]) == (4, 40, 160)
    assert figures["symmetric"]


def machine_file(directory: Path) -> Path:
    """The tree as Slurm writes it."""
    path = directory / "topology.conf"
    leaves = [f"SwitchName=leaf{leaf} Nodes=h[{2 * leaf}-{2 * leaf + 1}]" for leaf in range(2)]
    path.write_text("\n".join([*leaves, "SwitchName=top Switches=leaf[0-1]"]) + "\n")
    return path


def test_map(watched: Path, tmp_path: Path) -> None:
    """`topolane map` brings the pairs together: in rank order all bytes cross leaves, mapped none."""
    machine = machine_file(tmp_path)
    done = said("map", "--machine", machine, "--traffic", watched, "--hosts", "h[0-3]", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["hop_bytes"] == 0 < figures["rank_order_hop_bytes"]


def test_links(watched: Path, tmp_path: Path) -> None:
    """`topolane links` lays it over the machine: in rank order the leaves' uplinks carry it."""
    jobs = tmp_path / "jobs.json"
    name = os.path.relpath(watched, tmp_path)
    jobs.write_text(json.dumps({"running": [{"id": 1, "nodes": "h[0-3]", "traffic": name}]}))
    done = said("links", "--machine", machine_file(tmp_path), "--jobs", jobs, "--json")
    assert done.returncode == 0, done.stderr
    assert max(link["load"] for link in json.loads(done.stdout)["links"]) > 0


def test_nova_profile(watched: Path) -> None:
    """A group of servers in Nova is arranged by it: the third server goes to the leaf of the first."""
    traffic = nova_traffic.profile(str(watched.parent), "pairs")
    group = nova_traffic.GroupRanks(Machine.of("toy", TREE), traffic, {0: 2, 1: 0}, 2)
    hop_bytes = group._hop_bytes()
    assert hop_bytes[3] == 0 < hop_bytes[1]


def test_what_is_written_is_read(watched: Path) -> None:
    """Reading a file and writing it again changes nothing, and its totals are those of the engine's reader."""
    recorded = matrix.read(watched)
    assert recorded.text() == watched.read_text()
    _, _, size, messages = Traffic.parse(watched.read_text(), "x").arrays()
    assert np.array_equal(size, recorded.total("bytes"))
    assert np.array_equal(messages, recorded.total("messages"))


def test_show(watched: Path, tmp_path: Path) -> None:
    """The summary has all bytes crossing the halves of the ranks; the picture is SVG or PNG as its name says."""
    figures = json.loads(said("mpi", "show", watched, "--json").stdout)
    assert figures["halves"] == figures["all"] == {"messages": 40, "bytes": 160, "turns": 40}
    assert figures["pairs"][0]["bytes"] == 40
    assert {call["call"] for call in figures["calls"]} >= {"MPI_Sendrecv"}
    assert 0 < figures["in_mpi"] <= 1
    for name, begin in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG")):
        done = said("mpi", "show", watched, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_bytes().startswith(begin)
        assert "between the halves of the ranks" in done.stdout
    traffic_matrix.draw(matrix.read(watched), str(tmp_path / "b.svg"))
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.svg").read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("# topolane mpi:", "# other:", "not a matrix"),
        ("# ranks: 4", "# ranks: 9", "of a run that had 4"),
        ('"ranks": 4', '"ranks": 5', "damaged"),
        ('{"program"', '["program"', "damaged"),
        (",turns,", ",turn,", "columns"),
        ("\n0,2,40,10,", "\n0,2,40,x,", ":5"),
        ("\n0,2,40,10,10,", "\n0,2,40,10,-1,", ":5"),
        ("\n0,2,40,10,10,", "\n0,9,40,10,10,", ":5"),
    ],
)
def test_damaged_files(watched: Path, tmp_path: Path, old: str, new: str, sentence: str) -> None:
    """A file that is no such matrix is refused in one sentence that names it, and the line where there is one."""
    text = watched.read_text()
    assert old in text
    path = tmp_path / "damaged.csv"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match="damaged.csv") as error:
        matrix.read(path)
    assert sentence in str(error.value)


def test_a_file_that_was_cut_is_refused_by_all_that_read_it(watched: Path, tmp_path: Path) -> None:
    """Cut at the end of any line, last line included: one sentence with the file, and the line where it has its columns."""
    lines = watched.read_text().splitlines(keepends=True)
    header = next(at for at, line in enumerate(lines) if line.startswith("from,"))
    path = tmp_path / "cut.csv"
    for count in range(len(lines)):
        path.write_text("".join(lines[:count]))
        for read in (matrix.read, read_traffic):
            with pytest.raises(InputError, match=f"cut.csv:{count}: " if count > header else "cut.csv: "):
                read(path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """The command says so in one sentence, with exit code 2."""
    path = tmp_path / "damaged.csv"
    path.write_text("from,to,bytes\n0,1,5\n")
    done = said("mpi", "show", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and "damaged.csv" in done.stderr


def test_rank_k(watched: Path) -> None:
    """A program's profile for rank k takes the matrix as what its processes send."""
    assert Profile(4, read_traffic(watched), core_seconds=1.0).processes == 4
