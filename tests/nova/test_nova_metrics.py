"""Metrics for Prometheus: groups that share links, their hops, and what the filter refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud_process import HOSTS, LEAVES, CloudProcess, Refused
from metrics_page import exported
from placements import COMPACT, ISOLATED, STOCK, hops, ours, tree
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import check_complete

TREE = tree(LEAVES, leaves_in_pod=2)


@pytest.fixture
def cloud(running: CloudProcess) -> Iterator[CloudProcess]:
    """The cloud with Nova's own weighers."""
    running.schedule_by(STOCK)
    yield running
    running.clear()


def values(text: str) -> dict[tuple[str, str], float]:
    """The samples of a text by name, without prefix, and by the value of their label."""
    return {
        (sample.name.removeprefix("topolane_nova_"), "".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_groups_hops_and_hosts_are_those_of_the_cloud(cloud: CloudProcess, tmp_path: Path) -> None:
    """Two isolated groups cross the same two leaves; a compact group lies on one leaf. A disabled host is out of service."""
    for name, hosts in (("one", (HOSTS[0], HOSTS[18])), ("two", (HOSTS[1], HOSTS[19]))):
        group = cloud.group(name)
        for host in hosts:
            cloud.boot(1, group, hints=ISOLATED, host=host)
    group = cloud.group("three")
    for host in HOSTS[36:38]:
        cloud.boot(1, group, hints=COMPACT, host=host)
    cloud.disable(HOSTS[71])
    try:
        ended, output, errors = cloud.command("metrics", "--once", directory=str(tmp_path))
    finally:
        cloud.disable(HOSTS[71], False)
    assert (ended, errors) == (0, "")
    found = values(output)
    assert found["up", ""] == 1
    assert found["jobs", "isolatedrunning"] == found["isolated_jobs_sharing_links", ""] == 2
    assert found["jobs_above_least", "isolated"] == 2
    assert found["hops_above_least", "isolated"] == 2 * hops(TREE, (HOSTS[0], HOSTS[18]))
    assert found["jobs", "compactrunning"] == 1 and found["hops_above_least", "compact"] == 0
    assert [found["nodes", state] for state in ("idle", "busy", "out_of_service")] == [65, 6, 1]
    assert found["nodes_off_tree", ""] == 0
    assert list(exported("nova", output))[:2] == ["topolane_nova_up", "topolane_nova_problems"]
    assert not any(name.startswith("refusals") for name, _ in found), "without a nova.conf they are not known"


def test_refusals_are_counted_by_reason_in_the_api_database(cloud: CloudProcess) -> None:
    """Each refused request counts once, also one of several servers; what is placed does not count."""
    cloud.schedule_by(ours())
    before = cloud.refusals()
    with pytest.raises(Refused):
        cloud.boot(2, cloud.group("hint"), hints={"topolane:placement": "isolatd"})
    with pytest.raises(Refused):
        cloud.boot(73, cloud.group("large"), hints=ISOLATED)
    cloud.boot(2, cloud.group("placed"), hints=ISOLATED)
    expected = before | {kind: before.get(kind, 0) + 1 for kind in ("invalid-hint", "not-now")}
    assert cloud.refusals() == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "nova.conf: [api_database] connection is not set"),
        ("[topolane]\ndefault_placement = compct\n", "nova.conf: "),
    ],
)
def test_a_bad_nova_conf_is_one_sentence(
    cloud: CloudProcess, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "nova.conf").write_text(text)
    ended, output, errors = cloud.command(
        "metrics", "--once", "--nova-conf", "nova.conf", directory=str(tmp_path)
    )
    assert (ended, output, errors.strip().count("\n")) == (2, "", 0)
    assert sentence in errors


def test_a_database_of_refusals_is_read_with_the_nova_conf(cloud: CloudProcess, tmp_path: Path) -> None:
    """Reasons that never occurred are 0. A database that does not answer is said by `refusals_known`."""
    import sqlalchemy as sa
    from topolane.nova.refusal_table import KINDS, REFUSALS

    engine = sa.create_engine(f"sqlite:///{tmp_path}/api.sqlite")
    REFUSALS.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(REFUSALS.insert().values(kind="cannot-isolate", requests=7))
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/api.sqlite\n")
    words = ("metrics", "--once", "--nova-conf", "nova.conf")
    text = cloud.command(*words, directory=str(tmp_path))[1]
    check_complete("nova", text)
    found = values(text)
    assert found["refusals_known", ""] == 1
    assert {kind: found["refusals_total", kind] for kind in KINDS} == dict.fromkeys(KINDS, 0) | {
        "cannot-isolate": 7
    }
    conf.write_text("[api_database]\nconnection = sqlite:////nowhere/api.sqlite\n")
    assert values(cloud.command(*words, directory=str(tmp_path))[1])["refusals_known", ""] == 0
