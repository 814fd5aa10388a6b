"""The table of refusals, which nova-scheduler writes and `topolane nova metrics` reads. It needs only
SQLAlchemy.
"""

from __future__ import annotations

import sqlalchemy as sa

from topolane._engine import InputError

KINDS = (
    "invalid-hint",
    "not-now",
    "never",
    "would-share-links",
    "cannot-isolate",
    "no-identical-host",
    "unanswered",
)
"""Reasons of refusals: those of the engine, an invalid hint, too few hosts with the same CPU, and an isolated
group that cannot be decided.
"""

REFUSALS = sa.Table(
    "topolane_refusals",
    sa.MetaData(),
    sa.Column("kind", sa.String(40), primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
)


def read(connection: str, file: str) -> dict[str, int]:
    """The number of refused requests by reason; empty while the table does not exist.

    connection: the URL of the API database. file: the nova.conf that names it. Raises InputError if the
    database cannot be read.
    """
    counts = dict.fromkeys(KINDS, 0)
    try:
        engine = sa.create_engine(connection)
        if sa.inspect(engine).has_table(REFUSALS.name):
            with engine.connect() as reading:
                counts |= {row.kind: row.requests for row in reading.execute(sa.select(REFUSALS))}
        engine.dispose()
    except (sa.exc.SQLAlchemyError, ImportError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"{file}: [api_database] connection cannot be read: {why}") from None
    return counts
