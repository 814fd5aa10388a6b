"""Makes Topolane's own tables in Nova's API database."""

from __future__ import annotations

import sqlalchemy as sa
from nova.db.api import api as api_db
from oslo_db import exception as db_exception
from sqlalchemy.schema import CreateTable

UNUSABLE = (
    db_exception.DBError,
    db_exception.CantStartEngineError,
    sa.exc.SQLAlchemyError,
    LookupError,
    TypeError,
    ValueError,
)
"""What a database raises that does not answer, has no tables, or holds something else in them."""


def make(*tables: sa.Table) -> None:
    """Makes the tables that are missing. Several processes may do so at once: a table that another one has made since
    is a success. Raises what is in `UNUSABLE`.

    A table that is there needs no right to make tables, so an operator can make them for a user of the database that
    has no such right. Each table is one statement with its indexes, so none is ever there in part.
    """
    engine = api_db.get_engine()
    for table in tables:
        if not sa.inspect(engine).has_table(table.name):
            with engine.begin() as connection:
                connection.execute(CreateTable(table, if_not_exists=True))
