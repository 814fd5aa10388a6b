"""The options of the scheduler's plugin, in the group [topolane] of nova.conf."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("topolane", title="Topolane: groups of servers placed by the network's tree")

OPTIONS = [
    cfg.StrOpt(
        "machine_file",
        help="A file that describes the network: a machine file of Topolane, a topology.conf of Slurm or the "
        "output of ibnetdiscover; its nodes are compute hosts by name. Read again when it changes. Default: "
        "the metadata topolane:leaf, topolane:pod and topolane:site of the host aggregates.",
    ),
    cfg.FloatOpt(
        "topology_lifetime",
        default=5.0,
        min=0.0,
        help="Seconds for which the topology is taken as known before it is looked at again.",
    ),
    cfg.StrOpt(
        "default_placement",
        default="none",
        choices=[
            ("none", "as if Topolane were not there"),
            ("compact", "least hop-bytes"),
            ("isolated", "no link used by two groups, and then least hop-bytes"),
            ("spread", "as far apart as can be"),
        ],
        help="What server groups get that ask for nothing by the hint or extra spec topolane:placement.",
    ),
    cfg.StrOpt(
        "compact_policy",
        default="hop-bytes-exact",
        choices=[
            ("hop-bytes-exact", "the least hop-bytes there can be"),
            ("hop-bytes", "the paper's rule at every level of the tree"),
            ("bunch", "the paper's listing as it stands"),
        ],
        help="The policy of compact groups, by the name it has in the simulator.",
    ),
    cfg.FloatOpt(
        "weight_multiplier",
        help="The weigher's multiplier. Default: just more than those of all other weighers together, so that "
        "they only decide between hosts that are equally good for the group.",
    ),
    cfg.StrOpt(
        "traffic_directory",
        default="/etc/nova/topolane/traffic",
        help="Where the traffic profiles are that topolane:traffic=NAME asks for: NAME.csv or NAME.mtx.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Makes the options known to oslo.config."""
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """For oslo-config-generator, by the entry point oslo.config.opts."""
    return [(GROUP, OPTIONS)]
