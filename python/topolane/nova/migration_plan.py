"""The file of a plan of live migrations."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from topolane import parsing
from topolane._engine import InputError
from topolane.cluster import room_files
from topolane.nova.plan_traffic import PairWeights
from topolane.texts import shown

COMMAND = "topolane nova plan"
EARLIER_STATES = ("planned", "started", "done", "failed", "skipped")
"""Of migrations, in files of an earlier release, which had no journal."""


@dataclasses.dataclass(frozen=True)
class Migration:
    """The move of one server. Hops are those of its group, summed over pairs of its servers."""

    server: str
    name: str
    group: str
    source: str
    target: str
    before: float
    """Planned hops before the migration."""
    after: float
    """Planned hops after the migration."""
    forced: bool = False
    """Whether to bypass Nova's filters: the group temporarily shares links that the filters would exclude."""


@dataclasses.dataclass
class MigrationPlan:
    """Migrations, in the order in which to make them."""

    FORMAT: ClassVar = "topolane-nova-migration-plan"
    VERSION: ClassVar = 1

    migrations: list[Migration]
    start: dict[str, float]
    """Hops of each group when the plan was made. No group may end with more."""
    in_order: bool = False
    """Whether each migration must wait until all before it are done."""
    weights: dict[str, PairWeights] = dataclasses.field(default_factory=dict)
    """The weights of the hops of groups whose traffic is known."""


@dataclasses.dataclass
class EarlierPlan(MigrationPlan):
    """A plan in a file of an earlier release, which says what has become of its migrations."""

    states: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """For each migration one of EARLIER_STATES, and why it failed or was skipped."""


def read(path: Path) -> MigrationPlan:
    """The plan in a file. Raises InputError."""
    source = str(path)
    if room_files.kind_of(path) is not None:
        return _plan(room_files.read(path, MigrationPlan, COMMAND), source)
    given = parsing.read_json(path)
    if not isinstance(given, dict) or given.get("version") != 1:
        raise InputError(f"{source}: it is no plan of `{COMMAND} --out`")
    rows = given.get("migrations")
    states = [
        _take_state(row, f"{source}: migrations[{at}]")
        for at, row in enumerate(rows if isinstance(rows, list) else ())
    ]
    plan = _plan({"in_order": False, "weights": {}} | given, source)
    return EarlierPlan(**vars(plan), states=states)


def _take_state(row: Any, source: str) -> tuple[str, str]:
    """Takes the state of a migration out of its row."""
    if not isinstance(row, dict):
        raise InputError(f"{source}: it is no object")
    row.setdefault("forced", False)
    state, why = row.pop("state", "planned"), row.pop("why", "")
    if state not in EARLIER_STATES or not isinstance(why, str):
        raise InputError(f"{source}: state {shown(str(state))} is not known")
    return state, why


def _plan(given: dict[str, Any], source: str) -> MigrationPlan:
    start, weights = given.get("start"), given.get("weights")
    if not isinstance(start, dict) or not isinstance(weights, dict):
        raise InputError(f"{source}: start or weights is no object")
    if not isinstance(given.get("in_order"), bool):
        raise InputError(f"{source}: in_order is no bool")
    migrations = list(room_files.rows_of(given, "migrations", Migration, source))
    servers = [migration.server for migration in migrations]
    for at, migration in enumerate(migrations):
        if migration.group not in start:
            raise InputError(f"{source}: migrations[{at}]: group {shown(migration.group)} is not in start")
        if migration.server in servers[:at]:
            raise InputError(f"{source}: migrations[{at}]: server {shown(migration.server)} moves twice")
    try:
        hops = {group: float(hops) for group, hops in start.items()}
        known = {group: PairWeights.read(fields) for group, fields in weights.items()}
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"{source}: start or weights: {error}") from error
    return MigrationPlan(migrations, hops, given["in_order"], known)
