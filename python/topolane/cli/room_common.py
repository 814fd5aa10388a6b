"""What the commands that make room have in common."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from topolane import texts

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def no_room_is_told() -> Iterator[None]:
    """Ends with exit code 1 and the reason where there is no plan, or where it could not be carried out."""
    from topolane.live.room_files import NoRoomError

    try:
        yield
    except NoRoomError as why:
        click.echo(texts.printable(texts.sentence(f"{why}.")), err=True)
        sys.exit(1)


def tell(sentence: str) -> None:
    """Prints what has been done, at once."""
    click.echo(texts.printable(sentence))
    sys.stdout.flush()
