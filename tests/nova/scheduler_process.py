"""A scheduler process that places groups with Nova's own databases and the plugin: scheduler_process.py SETTINGS.

SETTINGS is JSON: the connections of the API database and the cell's, and options of [topolane]. Requests come as lines
of JSON on the standard input, answers go to the standard output. Placement is a table with one row per host that is
taken: a host that is taken is refused, and the next one of the list is tried, as Nova's scheduler does.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import sqlalchemy as sa
from nova import conf, config, objects
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.db.main import models

TAKEN = sa.Table(
    "taken",
    sa.MetaData(),
    sa.Column("host", sa.String(50), primary_key=True),
    sa.Column("server", sa.String(36), nullable=False),
)
"""What Placement holds, in addition to the servers of the cell."""


def configure(settings: dict[str, Any]) -> None:
    config.parse_args(["scheduler"], default_config_files=[])
    conf.CONF.set_override("connection", settings["api"], "api_database")
    conf.CONF.set_override("connection", settings["cell"], "database")
    api_db.configure(conf.CONF)
    main_db.configure(conf.CONF)
    objects.register_all()


def free_hosts(hosts: list[str]) -> list[str]:
    with main_db.get_engine().begin() as connection:
        taken = {row.host for row in connection.execute(sa.select(TAKEN.c.host))}
    return [host for host in hosts if host not in taken]


def take(host: str, server: str) -> bool:
    try:
        with main_db.get_engine().begin() as connection:
            connection.execute(TAKEN.insert().values(host=host, server=server))
    except Exception as error:
        if "Duplicate" in type(error).__name__ or "IntegrityError" in type(error).__name__:
            return False
        raise
    return True


def give_back(servers: list[str]) -> None:
    with main_db.get_engine().begin() as connection:
        connection.execute(TAKEN.delete().where(TAKEN.c.server.in_(servers)))


def place(request: dict[str, Any]) -> list[str] | None:
    """The hosts of the servers, one after another; None if one finds none."""
    from nova.weights import WeighedObject
    from nova_specs import host_state, request_spec
    from topolane.nova.filter import TopolaneFilter
    from topolane.nova.weigher import TopolaneWeigher

    servers = request["servers"]
    spec = request_spec(request["spec"])
    spec.instance_group = objects.InstanceGroup.get_by_uuid(spec._context, request["group"])
    spec.instance_group.hosts = []
    left = [
        host_state({**request["host"], "host": name, "nodename": name})
        for name in free_hosts(request["hosts"])
    ]
    plugin_filter, weigher = TopolaneFilter(), TopolaneWeigher()
    given: list[str] = []
    for server in servers:
        spec.instance_uuid = server
        left = list(plugin_filter.filter_all(left, spec))
        weights = weigher.weigh_objects([WeighedObject(host, 0.0) for host in left], spec) if left else []
        ranked = [host for _, host in sorted(zip(weights, left), key=lambda pair: -pair[0])]
        time.sleep(random.uniform(0.0, 0.02))  # what Placement takes for a claim
        chosen = next((host for host in ranked if take(host.host, server)), None)
        if chosen is None:
            give_back(servers)
            return None
        given.append(chosen.host)
        chosen.instances[server] = objects.Instance(uuid=server)
        spec.instance_group.hosts.append(chosen.host)
    if len(servers) > 1:
        plugin_filter.filter_all(left, spec)  # Nova asks again for alternates
    return given


def build(servers: list[str], hosts: list[str]) -> None:
    """The cell learns of the servers, and a little later where they are."""
    engine = main_db.get_engine()
    rows = [{"uuid": server, "task_state": "scheduling", "deleted": 0} for server in servers]
    with engine.begin() as connection:
        connection.execute(models.Instance.__table__.insert(), rows)
    time.sleep(random.uniform(0.0, 0.3))
    with engine.begin() as connection:
        for server, host in zip(servers, hosts):
            one = models.Instance.__table__.update().where(models.Instance.__table__.c.uuid == server)
            connection.execute(one.values(host=host, task_state=None))


def main() -> None:
    settings = json.loads(sys.argv[1])
    configure(settings)
    from topolane.nova.config import register

    register(conf.CONF)
    for option, value in settings["topolane"].items():
        conf.CONF.set_override(option, value, "topolane")
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        hosts = place(request)
        print(json.dumps(hosts), flush=True)
        if hosts is not None:
            build(request["servers"], hosts)
        print(json.dumps("done"), flush=True)


if __name__ == "__main__":
    main()
