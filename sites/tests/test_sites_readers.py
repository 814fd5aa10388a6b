"""The readers of sites under garbage: each answers with a value or with one sentence, whatever it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from mutated_files import Readers, files_of, mutations, name_of, read, read_mutated, some_cases

pytest.importorskip("sqlalchemy", reason="topolane-sites is not installed with what it needs")
pytest.importorskip("psutil", reason="topolane-sites is not installed with what it needs")
from topolane_sites.clusters import read_cluster
from topolane_sites.files import read_config
from topolane_sites.model import Host

CORPUS = Path(__file__).parent / "corpus"


def _sites(path: Path) -> Any:
    return read_config(path)


def _cluster(path: Path) -> Any:
    hosts = (
        Host("a1", "a", 2, 2 << 30, "qmp", "/nowhere/a1"),
        Host("b1", "b", 2, 2 << 30, "qmp", "/nowhere/b1"),
    )
    return read_cluster(path, hosts, ())


GUEST = 'name = "g1"\ncores = 1\nmemory = "256 MiB"\naddress = "10.42.0.1"\nkernel = "/etc/passwd"\n'
READERS: Readers = {
    "sites": (
        _sites,
        "sites.toml",
        (
            '[manager]\nlisten = ["unix:/run/t/api.sock"]\nstate = "sites.db"\ninterval = 2\nmoves-at-once = 3\n'
            '[[site]]\nname = "east"\n[[site.host]]\nname = "e1"\ncores = 8\nmemory = "16 GiB"\n'
            '[[site]]\nname = "west"\n[[site.host]]\nname = "w1"\ncores = 8\nmemory = 1073741824\n'
            '[[link]]\nbetween = ["east", "west"]\nlatency = 0.005\nbandwidth = 1.25e8\nwindow = "4 MiB"\n'
            '[[guest]]\nname = "g1"\ncores = 2\nmemory = "1 GiB"\nhost = "w1"\n'
        ),
    ),
    "cluster": (
        _cluster,
        "cluster.toml",
        'name = "c"\nnetwork = "10.42.0.0/24"\n[[host]]\nname = "a1"\ntunnel = "192.0.2.1"\n'
        '[[host]]\nname = "b1"\nrun = ["ssh", "b1"]\ntunnel = "192.0.2.2"\nbehind-nat = true\n[[guest]]\n'
        + GUEST,
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_the_files_that_are_mutated_are_good(name: str, tmp_path: Path) -> None:
    """A mutation of what is refused anyway would find nothing."""
    assert read(READERS[name], tmp_path) is None


@pytest.mark.parametrize("name", READERS)
@some_cases
@given(changes=mutations)
def test_a_mutated_file_gets_a_value_or_a_sentence(name: str, changes: Any, tmp_path: Path) -> None:
    """A user who gives a damaged or hostile file gets one sentence, never a traceback."""
    read_mutated(READERS[name], changes, tmp_path)


@pytest.mark.parametrize("file", files_of(CORPUS), ids=name_of)
def test_what_once_broke_a_reader_gets_a_sentence(file: Path, tmp_path: Path) -> None:
    """A file that once ended in a traceback ends in one sentence, or is read."""
    read(READERS[file.parent.name], tmp_path, file.read_bytes())
