"""What a command says if Python packages are missing."""

from __future__ import annotations

import re
import sys
from importlib import metadata

import pytest
from topolane import extras


@pytest.mark.parametrize("extra", ["dask", "kubernetes", "nova", "serve", "slurm"])
def test_the_command_that_is_printed_installs_all_packages_of_the_extra(extra: str) -> None:
    """Topolane is in no package index, so the command names what the extra requires, each as one word of the shell."""
    said = str(extras.missing("the page", extra, ImportError("No module named 'x'")))
    assert said.startswith(f"the page needs the Python packages of the extra {extra}: No module named 'x'; ")
    wanted = [
        line.partition(";")[0].strip()
        for line in metadata.requires("topolane") or []
        if re.search(rf"extra == ['\"]{extra}['\"]", line)
    ]
    assert wanted
    command = said.partition("install them with: ")[2]
    assert command.startswith(f"{sys.executable} -m pip install ")
    for package in wanted:
        assert package in command.replace("'", "").split(" ")
    assert "topolane" not in command.partition(" install ")[2]
