"""A strategy for OpenStack Watcher: the migrations of `topolane nova plan` as actions of an audit."""

from __future__ import annotations

from typing import Any

from watcher.decision_engine.strategy.strategies import base

from topolane.nova import cloud, plan, plan_rules


class ServerGroupPlacement(base.UnclassifiedStrategy):  # type: ignore[misc]
    """Brings the servers of compact and isolated groups close together in the network.

    The cloud is read as by the commands: from clouds.yaml or the OS_* environment variables of the decision
    engine.
    """

    @classmethod
    def get_name(cls) -> str:
        """The name that audits use."""
        return "topolane_server_groups"

    @classmethod
    def get_display_name(cls) -> str:
        """The name that people see."""
        return "Topolane: server groups on the network tree"

    @classmethod
    def get_translatable_display_name(cls) -> str:
        """The display name before translation."""
        return cls.get_display_name()

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        """The parameters of an audit, equal to those of `topolane nova plan`."""
        return {
            "properties": {
                "os_cloud": {"description": "Cloud in clouds.yaml.", "type": "string"},
                "machine": {"description": "A file that describes the network.", "type": "string"},
                "nova_conf": {"description": "The nova.conf of nova-scheduler.", "type": "string"},
                "groups": {
                    "description": "Names or ids of groups; all groups if empty.",
                    "type": "array",
                    "items": {"type": "string"},
                    "default": [],
                },
                "least_gain": {
                    "description": "Fewest hops that each migration must save.",
                    "type": "integer",
                    "minimum": 1,
                    "default": 2,
                },
                "most": {"description": "Most migrations.", "type": "integer", "minimum": 1},
            }
        }

    @classmethod
    def get_config_opts(cls) -> list[Any]:
        """No options: this strategy uses no source of measurements."""
        return []

    def pre_execute(self) -> None:
        """Does nothing: Watcher's model of the cluster has no server groups, so Nova itself is read."""

    def do_execute(self, audit: Any = None) -> None:
        """Adds a live migration for every step of the plan, in its order."""
        asked = self.input_parameters
        file = asked.get("nova_conf")
        options = plan_rules.read_options(file) if file else None
        known = options if options is not None else plan_rules.WITHOUT_FILE
        connection = cloud.connect(asked.get("os_cloud"))
        found = cloud.read(connection, asked.get("machine") or known.machine_file, known.default_placement)
        rules = plan_rules.Rules(connection, found, options)
        made = plan.make(
            found,
            rules.slots,
            groups=plan.groups_named(found, asked.get("groups") or ()),
            least_gain=asked.get("least_gain") or 2,
            most=asked.get("most"),
            weights=rules.weights,
            compact_policy=known.compact_policy,
        )
        for move in made.migrations:
            self.solution.add_action(
                action_type=self.MIGRATION,
                resource_id=move.server,
                input_parameters={
                    "migration_type": "live",
                    "source_node": move.source,
                    "destination_node": move.target,
                    "resource_name": move.name,
                },
            )

    def post_execute(self) -> None:
        """Does nothing."""
