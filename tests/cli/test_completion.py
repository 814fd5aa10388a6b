"""Completion in a shell: its script, and the names that it offers as values."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from topolane import _engine

CODE = "import sys; sys.argv[0] = 'topolane'; from topolane.cli import main; main()"


def completed(*words: str) -> list[tuple[str, str]]:
    """What bash is given for the last of these words: kinds and values."""
    environment = {"COMP_WORDS": " ".join(("topolane", *words)), "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | environment | {"_TOPOLANE_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(kind, value) for kind, _, value in (line.partition(",") for line in done.stdout.splitlines())]


@pytest.mark.parametrize(
    ("shell", "begins"),
    [
        ("bash", "_topolane_completion()"),
        ("zsh", "#compdef topolane"),
        ("fish", "function _topolane_completion"),
    ],
)
def test_completion_prints_the_script_of_a_shell(topolane, shell, begins):
    """The same script as the wheel carries: it calls `topolane` for the words so far."""
    script = topolane("completion", shell)
    assert script.startswith(begins) and f"_TOPOLANE_COMPLETE={shell}_complete" in script


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (("simulate", "--policy", ""), [name for name, _ in _engine.policies()]),
        (("simulate", "--queue", "easy"), ["easy", "easy-strict", "easy-pinned"]),
        (("compare", "--machine", "c"), ["cab"]),
        (("machine", "show", "the"), ["theta"]),
        (("compare", "--workload", "cab-"), ["cab-aug", "cab-sep", "cab-nov"]),
        (("workload", "make", "gpu"), ["gpu-month"]),
        (("machine", "convert", "cab", "--to", "slurm"), ["slurm", "slurm-block", "slurm-yaml"]),
        (("links", "--routing", "d-"), ["d-mod-k"]),
        (("traffic", "sten"), ["stencil4d"]),
    ],
)
def test_names_complete(words, known):
    assert [value for kind, value in completed(*words) if kind == "plain"] == known


def test_the_last_name_of_a_list_completes():
    """The names before stay, because a shell replaces the whole word."""
    assert completed("compare", "--policies", "isolated,jig") == [
        ("plain", "isolated,jigsaw"),
        ("plain", "isolated,jigsaw-relaxed"),
    ]


def test_where_no_name_begins_like_the_word_the_shell_completes_files():
    assert completed("simulate", "--machine", "my-machine") == [("file", "my-machine")]
