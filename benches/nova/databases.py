"""Measures the queries that a group's request makes to Nova's databases, in a cloud of 500 groups.

The databases are SQLite in memory, as in Nova's own tests. It runs in a separate process, because importing
nova.tests changes the interpreter.
"""

from __future__ import annotations

import json
import logging
import time
import unittest
import uuid
from typing import Any

from measure import Options, Result
from nova import context as nova_context
from nova import objects, test
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.tests.unit import fake_request_spec
from topolane.nova.members import OtherGroups

GROUPS = 500
SERVERS = 6
HOSTS = 1_296


class Questions(test.TestCase):  # type: ignore[misc]
    """A test case only for its fixtures; it is no test."""

    def runTest(self) -> None:
        logging.getLogger().setLevel(logging.ERROR)
        context = nova_context.get_admin_context()
        groups = [[str(uuid.uuid4()) for _ in range(SERVERS)] for _ in range(GROUPS)]
        cell = next(cell for cell in objects.CellMappingList.get_all(context) if not cell.is_cell0())
        with nova_context.target_cell(context, cell) as cell_context:
            _instances(cell_context, groups)
        for number, members in enumerate(groups):
            group = objects.InstanceGroup(context, name=f"group{number}", policy="anti-affinity")
            group.project_id = group.user_id = "user"
            group.members = members
            group.create()
        _specs(context, groups)
        others = OtherGroups()
        print(f"{GROUPS} groups, {GROUPS * SERVERS} servers, seconds of CPU:")
        for what in ("first request", "any later", "any later"):
            before = time.process_time()
            found = len(list(others.of(context, "", "none")))
            assert found == GROUPS
            print(f"{what}: {time.process_time() - before:.2f}", flush=True)


@main_db.pick_context_manager_writer  # type: ignore[untyped-decorator]
def _instances(context: Any, groups: list[list[str]]) -> None:
    rows = [
        {
            "uuid": server,
            "host": f"host{(SERVERS * number + index) % HOSTS}",
            "vm_state": "active",
            "deleted": 0,
        }
        for number, group in enumerate(groups)
        for index, server in enumerate(group)
    ]
    context.session.execute(models.Instance.__table__.insert(), rows)


@api_db.context_manager.writer  # type: ignore[untyped-decorator]
def _specs(context: Any, groups: list[list[str]]) -> None:
    spec = json.dumps(fake_request_spec.fake_spec_obj(context).obj_to_primitive())
    rows = [{"instance_uuid": server, "spec": spec} for group in groups for server in group]
    context.session.execute(api_models.RequestSpec.__table__.insert(), rows)


def measure(options: Options) -> Result:
    """Prints the seconds of three requests."""
    return Result(failed=not unittest.TextTestRunner().run(Questions()).wasSuccessful())
