"""What `topolane paper` offers: the studies of this wing, and those that other wings add."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from topolane import InputError, wings
from topolane.cli import cli
from topolane_studies.cli import command


@pytest.mark.parametrize("words", [(), *((name,) for name in command.commands)], ids=" ".join)
def test_every_paper_explains_itself(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, ["paper", *words, "--help"])
    assert done.exit_code == 0 and done.output.startswith("Usage: ")


def test_a_paper_of_a_wing_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence names the distribution, and the list of papers leaves it away."""
    installed = wings.added
    monkeypatch.setattr(wings, "added", lambda group: {} if group == wings.PAPERS else installed(group))
    done = CliRunner().invoke(cli, ["paper", "gang"])
    assert isinstance(done.exception, InputError)
    assert "paper gang' is part of topolane-gang, which is not installed: " in str(done.exception)
    assert "  gang " not in CliRunner().invoke(cli, ["paper", "--help"]).output


def test_all_papers_can_be_run_in_parts() -> None:
    done = CliRunner().invoke(cli, ["paper", "all", "--only", "rank-k", "--summary"])
    assert done.exit_code == 0 and "rank-k" in done.output and "sc18" not in done.output
    wrong = CliRunner().invoke(cli, ["paper", "all", "--only", "rank-k,x"])
    assert isinstance(wrong.exception, InputError) and "--only 'x': no such study; there are sc18" in str(
        wrong.exception
    )
