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
"""The errors of a database that does not answer, lacks the tables, or has other content in them."""


def make(*tables: sa.Table) -> None:
    """Creates the tables that are missing. A table that another process creates meanwhile is a success.
    Raises one of `UNUSABLE`.

    Existing tables need no right to create tables, so an operator can create them for a database user without
    that right. Each table is created in one statement with its indexes, so it never exists in part.
    """
    engine = api_db.get_engine()
    for table in tables:
        if not sa.inspect(engine).has_table(table.name):
            with engine.begin() as connection:
                connection.execute(CreateTable(table, if_not_exists=True))
