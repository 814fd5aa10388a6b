"""`topolane paper`: the commands of the studies where these are installed, else how to get them."""

from __future__ import annotations

import click

from topolane._engine import InputError

__all__ = ["command"]

MISSING = (
    "the studies of papers are not installed: install the wheel topolane-studies, which 'make wheel' in a clone "
    "writes to dist/, or run topolane from a clone"
)


@click.command("paper", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def without_studies() -> None:
    """Rerun a paper's experiment (needs topolane-studies, which is not installed)."""
    raise InputError(MISSING)


command: click.Command = without_studies
try:
    from topolane.studies.cli import command as studies
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("topolane.studies"):
        raise
else:
    command = studies
