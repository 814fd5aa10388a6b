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
        "unanswered",
        default="refuse",
        choices=[
            ("refuse", "they are refused: no valid host, with the reason"),
            ("stock", "Nova places them alone, and their links may be shared"),
        ],
        help="What groups get that are isolated by default_placement alone, while that cannot be decided: the claims of "
        "other schedulers are not known, a cell does not answer, the network is not described, or an error. A group that "
        "asks for isolation by itself is always refused.",
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
        help="The weigher's multiplier, on the scale of Nova's own weighers: the best host gets all of it, the worst "
        "none. The metadata topolane_weight_multiplier of a host's aggregates overrides it. Default: the group comes "
        "first, and other weighers only decide between hosts that are equally good for it.",
    ),
    cfg.StrOpt(
        "traffic_directory",
        default="/etc/nova/topolane/traffic",
        help="Where the traffic profiles are that topolane:traffic=NAME asks for: NAME.csv or NAME.mtx.",
    ),
    cfg.StrOpt(
        "measured",
        help="Where measured traffic is read: a site manager (https://host:port, http://localhost:port or "
        "unix:/path), or a folder of matrices that `topolane mpi run` wrote. Default: it is not used.",
    ),
    cfg.StrOpt(
        "measured_token_file",
        help="A file with a token of the site manager: that of read-token-file in its sites file, which may only read.",
    ),
    cfg.StrOpt(
        "measured_ca",
        help="A file with the certificates by which the manager's is checked. Default: those of the system.",
    ),
    cfg.FloatOpt(
        "measured_days",
        default=30.0,
        min=0.01,
        max=36500.0,
        help="Days after which a program that has ended is not used.",
    ),
    cfg.FloatOpt(
        "measured_interval", default=60.0, min=0.1, help="Seconds between two reads in the background."
    ),
    cfg.FloatOpt("measured_timeout", default=10.0, min=0.1, help="Seconds that one read may take."),
    cfg.StrOpt(
        "traffic_precedence",
        default="declared",
        choices=[
            ("declared", "the file that topolane:traffic names, else what was measured"),
            ("measured", "what was measured, else the file that topolane:traffic names"),
        ],
        help="Which traffic profile a group gets if there are two.",
    ),
    cfg.BoolOpt(
        "share_claims",
        default=True,
        help="Whether schedulers tell each other what they plan, in two tables of the API database: topolane_claims and "
        "topolane_claims_version. The first scheduler makes them. Isolated groups are refused while the tables cannot be "
        "used. Turn it off only if a single scheduler process runs.",
    ),
    cfg.StrOpt(
        "default_identical",
        default="none",
        choices=[
            ("none", "any hosts"),
            ("generation", "hosts whose CPUs have the same architecture, vendor and model"),
            ("cpu", "in addition the same features, sockets, cores and threads"),
        ],
        help="How alike a group's hosts must be if neither a hint nor an extra spec sets topolane:identical.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Makes the options known to oslo.config."""
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options for oslo-config-generator, which calls this through the entry point oslo.config.opts."""
    return [(GROUP, OPTIONS)]
