"""Arrays nested deep, numbers of thousands of digits and endless files: one sentence, not a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_files import ARRAYS, DIGITS, HEXADECIMAL, TABLES, limited, refused, refused_by, topolane


@pytest.mark.parametrize("value", [ARRAYS, HEXADECIMAL, DIGITS], ids=["arrays", "hexadecimal", "digits"])
def test_a_toml_file_of_deep_arrays_or_long_numbers(tmp_path: Path, value: str) -> None:
    """A user who gives a TOML file with arrays nested deep or numbers of thousands of digits gets no traceback."""
    (tmp_path / "sites.toml").write_text(f"[manager]\nstate = {value}\n")
    refused(topolane(tmp_path, "sites", "run", "--config", "sites.toml"), "sites.toml")


def test_a_file_without_end(tmp_path: Path) -> None:
    """A user who names a file without end cannot fill the memory."""
    refused(topolane(tmp_path, "sites", "run", "--config", "/dev/zero", preexec_fn=limited), "/dev/zero")


@pytest.mark.parametrize("value", [ARRAYS, TABLES, DIGITS], ids=["arrays", "tables", "digits"])
def test_a_cluster_file_of_deep_arrays_or_long_numbers(tmp_path: Path, value: str) -> None:
    """A user who gives a cluster file with arrays nested deep or numbers of thousands of digits gets no traceback."""
    file = tmp_path / "file"
    file.write_text(f"name = {value.replace(':', '=')}\n")
    refused_by("from topolane_sites.clusters import read_cluster; read_cluster({file!r}, (), ())", file)
