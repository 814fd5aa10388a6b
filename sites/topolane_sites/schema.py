"""The database tables of a manager."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

VERSION = 1
"""Increase this with every change of the tables."""

tables = MetaData()

schema = Table("schema", tables, Column("version", Integer, primary_key=True))

programs = Table(
    "program",
    tables,
    Column("id", String(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("ranks", Integer, nullable=False),
    Column("started", Float, nullable=False),
    Column("ended", Float),
    Column("mpi", String(255), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("sites", LargeBinary),
)

ranks = Table(
    "rank",
    tables,
    Column("program", String(255), primary_key=True),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("host", String(255), nullable=False),
    Column("seconds", Float, nullable=False),
    Column("in_mpi", Float, nullable=False),
    Column("skew", Float, nullable=False),
    Column("dropped", BigInteger, nullable=False),
    Column("gone", Boolean, nullable=False),
    # JSON: `calls`, rows of call, calls, bytes, seconds; `windows`, rows of incarnation, highest, holes in hexadecimal.
    Column("lists", Text, nullable=False),
    Column("keys", LargeBinary, nullable=False),  # u64 each, as in topolane.mpi.counts
    Column("sums", LargeBinary, nullable=False),  # three u64 each
)

values = Table(
    "value",
    tables,
    # accuracy, cluster, correction, guest, hold, home, host, nowhere, plan, remaining or setting
    Column("kind", String(32), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("value", Text, nullable=False),  # JSON
)

moves = Table(
    "move",
    tables,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("guest", String(255), nullable=False),
    Column("source", String(255), nullable=False),
    Column("target", String(255), nullable=False),
    Column("stage", String(32), nullable=False),
    Column("why", Text, nullable=False),
    Column("progress", Float, nullable=False),
    Column("detail", Text, nullable=False),  # JSON
    Column("changed", Float, nullable=False),
)

events = Table(
    "event",
    tables,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("text", Text, nullable=False),
)
