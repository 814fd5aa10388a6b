"""`topolane paper`: the commands of the studies where these are installed, else how to get them."""

from __future__ import annotations

import importlib.util

import click

from topolane._engine import InputError

__all__ = ["command"]

MISSING = (
    "the studies of papers are not installed: install the wheel topolane-studies, which 'make wheel' in a clone "
    "writes to dist/, or run topolane from a clone"
)

if importlib.util.find_spec("topolane.studies") is not None:
    from topolane.studies.cli import command
else:

    @click.command("paper", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def command() -> None:
        """Rerun a paper's experiment (needs topolane-studies, which is not installed)."""
        raise InputError(MISSING)
