"""The parts of a plan that need no cluster: paths, patches as kubectl makes them, differences, policies, texts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml

from clusterwright.api.meta import Json
from clusterwright.plan import policy
from clusterwright.plan.captured import Captured
from clusterwright.plan.changes import BadChange, checked, parse_set, put, three_way
from clusterwright.plan.differences import ABSENT, Field, fields
from clusterwright.plan.machines import Rollout, Turn
from clusterwright.plan.policy import BadPolicy
from clusterwright.plan.result import Duration, Plan, Touched
from clusterwright.plan.words import as_markdown, as_text, span


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("spec.replicas", 3, {"spec": {"replicas": 3, "list": [{"name": "a", "x": 1}]}}),
        ("spec.list[0].x", 2, {"spec": {"list": [{"name": "a", "x": 2}]}}),
        ("spec.list[name=a].x", None, {"spec": {"list": [{"name": "a"}]}}),
        ("spec.list[name=b.c].x", 1, {"spec": {"list": [{"name": "a", "x": 1}, {"name": "b.c", "x": 1}]}}),
        ('metadata.labels["a.b/c"]', "d", {"spec": {"list": [{"name": "a", "x": 1}]}, "metadata": {"labels": {"a.b/c": "d"}}}),
        ("spec.list[0]", None, {"spec": {"list": []}}),
    ],
)
def test_a_value_is_set_at_its_path(path: str, value: object, expected: object):
    obj = {"spec": {"list": [{"name": "a", "x": 1}]}}
    put(obj, path, value)
    assert obj == expected


@pytest.mark.parametrize("path", ["", "spec.list[7].x", "spec.list[x].y", "spec.list.name", "spec..", "spec[0]"])
def test_a_path_that_leads_nowhere_is_named(path: str):
    with pytest.raises(BadChange, match="--set"):
        put({"spec": {"list": [{"name": "a"}]}}, path, 1)


def test_a_value_may_contain_an_equals_sign():
    assert parse_set("spec.list[name=a].x=y=z", yaml.safe_load) == ("spec.list[name=a].x", "y=z")
    with pytest.raises(BadChange, match="path=value is expected"):
        parse_set("spec.replicas", yaml.safe_load)


def test_a_document_without_kind_is_named_by_its_file_and_number():
    with pytest.raises(BadChange, match=r"a\.yaml: document 2: kind is missing"):
        checked([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, {"apiVersion": "v1"}], "a.yaml", "default")


def test_fields_that_were_applied_before_and_are_not_any_more_are_removed():
    patch = three_way({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 3}}, {"spec": {"a": 1, "b": 2, "c": 4}})
    assert patch == {"spec": {"a": 3, "b": None}}


def test_differences_name_items_of_lists_by_what_identifies_them():
    before = {"kind": "X", "metadata": {}, "spec": {"v": [{"name": "a", "value": 1}, {"name": "b", "value": 2}]}, "status": {"x": 1}}
    after = {"kind": "X", "metadata": {"generation": 2}, "spec": {"v": [{"name": "b", "value": 3}]}, "status": {"x": 2}}
    assert fields(before, after) == (
        Field("spec.v[name=a]", {"name": "a", "value": 1}, ABSENT),
        Field("spec.v[name=b].value", 2, 3),
    )


def test_differences_do_not_show_secrets():
    def config(text: str) -> Json:
        return {
            "kind": "KubeadmConfig",
            "metadata": {},
            "spec": {"files": [{"path": "/a", "content": text}], "users": [{"name": "u", "passwd": text}]},
        }

    shown = repr(fields(config("secret-one"), config("secret-two")))
    assert "files[0].content" in shown
    assert "secret-" not in shown
    assert "secret-" not in repr(fields({"kind": "Secret", "data": {"a": "secret-one"}}, {"kind": "Secret", "data": {"a": "secret-two"}}))


def _plan() -> Plan:
    turn = Turn("KubeadmControlPlane/default/c", "Machine/default/old", "Machine/default/new", "* Version v1, v2 required", 0.0, 60.0)
    rollout = Rollout("KubeadmControlPlane/default/c", 1, 1, [turn], points=[(0.0, 1, 1), (10.0, 2, 1), (50.0, 2, 0), (60.0, 1, 1)])
    made = Plan(rollouts=[rollout], created=[Touched(turn.new)], deleted=[Touched(turn.old)], duration=Duration(60.0, 50.0, 70.0, 3))
    made.changed = [Touched("KubeadmControlPlane/default/c", fields=(Field("spec.version", "v1", "a|b `x` <!--"),))]
    return made


@pytest.mark.parametrize(
    ("rule", "breaks"),
    [
        ("replace", True), ("delete", False), ("control-plane-rollout", True), ("unavailable>0", True), ("unavailable>1", False),
        ("duration>69s", True), ("duration>70s", False),
    ],
)  # fmt: skip
def test_a_rule_is_broken(rule: str, breaks: bool):
    assert bool(policy.broken(_plan(), policy.parse([rule]))) is breaks


def test_a_change_that_does_not_end_breaks_every_limit_of_time():
    made = _plan()
    made.duration = Duration(None)
    assert policy.broken(made, policy.parse(["duration>1h"])) == ["duration>1h: the change would not end"]


@pytest.mark.parametrize("text", ["nonsense", "unavailable", "unavailable>x", "duration>soon", "replace>1"])
def test_a_rule_that_is_not_known_is_named(text: str):
    with pytest.raises(BadPolicy, match=r"--deny .*: one of replace, delete"):
        policy.parse([text])


def test_a_policy_file_has_one_field():
    assert [r.text for r in policy.from_document({"deny": ["replace", "unavailable>1"]})] == ["replace", "unavailable>1"]
    with pytest.raises(BadPolicy, match="one field, deny"):
        policy.from_document({"denied": []})


def test_the_text_has_the_effect_first():
    text = as_text(_plan())
    assert text.startswith("1 Machine replaced, 1 changed; about 1 min (50 s to 1 min 10 s in 3 runs).\n")
    assert "  because: Version v1, v2 required\n" in text
    assert "at most 1 more and 1 fewer available than now" in text


def test_markdown_cannot_be_broken_by_values():
    text = as_markdown(_plan())
    assert "| `KubeadmControlPlane/default/c` | 1 Machine replaced | Version v1, v2 required | 1 / 1 |" in text
    assert text.count("```") == 2


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Cluster/default/c", {"c"}),
        ("MachineDeployment/default/w", {"c"}),
        ("Cluster/default/new", set()),
        ("MachineDrainRule/default/x", {"c", "d"}),
    ],
)
def test_a_replica_has_the_clusters_that_a_change_may_matter_to(name: str, kept: set[str]):
    def obj(kind: str, named: str, cluster: str) -> Json:
        return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": named, "namespace": "default"}, "spec": {"clusterName": cluster}}

    objects = (obj("Cluster", "c", ""), obj("Cluster", "d", ""), obj("MachineDeployment", "w", "c"))
    made = Captured(objects, datetime(2026, 1, 1, tzinfo=UTC)).limited_to({name})
    assert {key.name for key in (c.key for c in made.clusters())} == kept


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (61, "1 min 1 s"), (120, "2 min"), (3600, "1 h"), (5400, "1 h 30 min")])
def test_durations_are_written_for_people(seconds: float, text: str):
    assert span(seconds) == text
