"""Whom a drain evicts, in which order, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.core import MachineDrainRule
from clusterwright.api.kubernetes import Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.machine import drain
from clusterwright.controllers.machine.drain import Behavior, DrainPlan, DrainPod, DrainProgress, Verdict
from clusterwright.runtime.errors import from_response
from clusterwright.runtime.models import decode

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAMESPACES = {"default": {"team": "web"}, "kube-system": {"tier": "sys"}}


def a_pod(name: str = "p", namespace: str = "default", **facts: Any) -> DrainPod:
    return DrainPod(key=ObjectKey(namespace, name), **facts)


def a_rule(name: str, behavior: str, order: int | None = None, **selectors: Any) -> MachineDrainRule:
    import msgspec

    spec: dict[str, Any] = {"drain": {"behavior": behavior, **({"order": order} if order is not None else {})}, **selectors}
    rule: MachineDrainRule = decode(MachineDrainRule, msgspec.json.encode({"metadata": {"name": name}, "spec": spec}))
    return rule


def judged(pod: DrainPod, *rules: MachineDrainRule, unreachable: bool = False) -> Verdict:
    return drain.judge(pod, rules=rules, namespaces=NAMESPACES, unreachable=unreachable, now=NOW)


@pytest.mark.parametrize(
    ("pod", "rules", "unreachable", "behavior", "order"),
    [
        pytest.param({"deleted_at": NOW - timedelta(seconds=2)}, [], True, "Skip", 0, id="unreachable-and-deleted-long-ago"),
        pytest.param({"deleted_at": NOW - timedelta(seconds=1)}, [], True, "Drain", 0, id="unreachable-and-deleted-just-now"),
        pytest.param({"deleted_at": NOW - timedelta(hours=2)}, [], False, "Drain", 0, id="deleted-on-a-reachable-node"),
        pytest.param({"daemon_set_exists": True}, [a_rule("r", "Drain", 5)], False, "Skip", 0, id="daemon-set-beats-rule"),
        pytest.param({"daemon_set_exists": False}, [], False, "Drain", 0, id="daemon-set-gone"),
        pytest.param({"mirror": True, "controlled": False}, [], False, "Skip", 0, id="static-pod"),
        pytest.param(
            {"labels": {"cluster.x-k8s.io/drain": "skip"}}, [a_rule("r", "Drain", 5)], False, "Skip", 0, id="label-skip-beats-rule"
        ),
        pytest.param({"labels": {"cluster.x-k8s.io/drain": "SKIP"}}, [], False, "Skip", 0, id="label-skip-in-any-case"),
        pytest.param({"labels": {"cluster.x-k8s.io/drain": "wait-completed"}}, [], False, "WaitCompleted", 0, id="label-wait-completed"),
        pytest.param({"labels": {"cluster.x-k8s.io/drain": "WaitCompleted"}}, [], False, "WaitCompleted", 0, id="label-without-hyphen"),
        pytest.param(
            {"labels": {"cluster.x-k8s.io/drain": "never"}}, [a_rule("r", "Drain", 5)], False, "Drain", 5, id="label-unknown-value"
        ),
        pytest.param({}, [a_rule("r", "Drain", -3)], False, "Drain", -3, id="rule-with-order"),
        pytest.param({}, [a_rule("r", "Drain")], False, "Drain", 0, id="rule-without-order"),
        pytest.param({}, [a_rule("r", "Skip")], False, "Skip", 0, id="rule-skip"),
        pytest.param({}, [a_rule("r", "WaitCompleted")], False, "WaitCompleted", 0, id="rule-wait"),
        pytest.param({}, [a_rule("a", "Skip"), a_rule("b", "Drain", 2)], False, "Skip", 0, id="first-rule-wins"),
        pytest.param({}, [], False, "Drain", 0, id="no-rule"),
    ],
)
def test_pods_get_the_expected_drain_verdicts(pod: Any, rules: Any, unreachable: bool, behavior: str, order: int) -> None:
    verdict = judged(a_pod(**pod), *rules, unreachable=unreachable)

    assert (verdict.behavior.value, verdict.order) == (behavior, order)


@pytest.mark.parametrize(
    ("facts", "warnings"),
    [
        pytest.param({"local_storage": True}, 1, id="local-storage"),
        pytest.param({"controlled": False}, 1, id="no-controller"),
        pytest.param({"daemon_set_exists": False, "local_storage": True}, 2, id="two-warnings"),
        pytest.param({"local_storage": True, "controlled": False, "finished": True}, 0, id="finished"),
    ],
)
def test_warnings_of_pods_that_lose_something(facts: Any, warnings: int) -> None:
    assert len(judged(a_pod(**facts)).warnings) == warnings


@pytest.mark.parametrize(
    ("selectors", "labels", "namespace", "applies"),
    [
        pytest.param([{"selector": {"matchLabels": {"app": "x"}}}], {"app": "x"}, "default", True, id="pod"),
        pytest.param([{"namespaceSelector": {"matchLabels": {"tier": "sys"}}}], {}, "kube-system", True, id="namespace"),
        pytest.param(
            [{"selector": {"matchLabels": {"app": "x"}}, "namespaceSelector": {"matchLabels": {"tier": "sys"}}}],
            {"app": "x"},
            "default",
            False,
            id="both-must-match",
        ),
        pytest.param(
            [{"selector": {"matchLabels": {"app": "y"}}}, {"selector": {"matchLabels": {"app": "x"}}}],
            {"app": "x"},
            "default",
            True,
            id="any-entry",
        ),
    ],
)
def test_a_drain_rule_selects_pods(selectors: Any, labels: Any, namespace: str, applies: bool) -> None:
    verdict = judged(a_pod(namespace=namespace, labels=labels), a_rule("r", "Skip", pods=selectors))

    assert (verdict.behavior is Behavior.SKIP) is applies


@pytest.mark.parametrize(
    ("machines", "applies"),
    [
        pytest.param([], True, id="all"),
        pytest.param([{"selector": {"matchLabels": {"pool": "gpu"}}}], True, id="machine"),
        pytest.param(
            [{"selector": {"matchLabels": {"pool": "gpu"}}, "clusterSelector": {"matchLabels": {"env": "dev"}}}], False, id="both"
        ),
        pytest.param([{"selector": {"matchLabels": {"pool": "x"}}}, {"clusterSelector": {"matchLabels": {"env": "prod"}}}], True, id="any"),
        pytest.param([{"selector": {}}], True, id="empty-selector"),
    ],
)
def test_a_drain_rule_selects_machines(machines: Any, applies: bool) -> None:
    rules = drain.applicable_rules([a_rule("r", "Skip", machines=machines)], {"pool": "gpu"}, {"env": "prod"})

    assert bool(rules) is applies


def test_rules_are_tried_by_name() -> None:
    rules = drain.applicable_rules([a_rule("b", "Skip"), a_rule("a", "Drain")], {}, {})

    assert [r.metadata.name for r in rules] == ["a", "b"]


def test_an_invalid_selector_fails_the_drain_even_in_a_rule_for_other_machines() -> None:
    other = a_rule("r", "Skip", machines=[{"selector": {"matchLabels": {"no": "such"}}}], pods=[{"selector": {"matchLabels": {"-": "x"}}}])

    with pytest.raises(drain.DrainError, match="invalid selectors in MachineDrainRule r"):
        drain.applicable_rules([other], {}, {})


def verdict(name: str, behavior: str = "Drain", order: int = 0, *, deleted: bool = False) -> Verdict:
    return Verdict(a_pod(name, deleted_at=NOW if deleted else None), Behavior(behavior), order)


def names(items: Any) -> list[str]:
    return [(i.pod.key if isinstance(i, Verdict) else i).name for i in items]


@pytest.mark.parametrize(
    ("verdicts", "evict", "later", "terminating", "wait", "wait_later"),
    [
        pytest.param([verdict("a"), verdict("b", order=3)], ["a"], ["b"], [], [], [], id="lowest-order-first"),
        pytest.param([verdict("a", deleted=True), verdict("b", order=3)], [], ["b"], ["a"], [], [], id="terminating-holds-its-order-back"),
        pytest.param(
            [verdict("a", order=3), verdict("b", order=9, deleted=True)], ["a"], [], ["b"], [], [], id="terminating-of-higher-order"
        ),
        pytest.param([verdict("w", "WaitCompleted"), verdict("b", order=3)], [], ["b"], [], ["w"], [], id="waiting-holds-back"),
        pytest.param(
            [verdict("w", "WaitCompleted"), verdict("a", order=-1)], ["a"], [], [], [], ["w"], id="negative-orders-before-waiting"
        ),
        pytest.param([verdict("s", "Skip", -9), verdict("a")], ["a"], [], [], [], [], id="skipped-do-not-count"),
        pytest.param([], [], [], [], [], [], id="nothing"),
    ],
)
def test_drain_plans_have_the_expected_order(verdicts: Any, evict: Any, later: Any, terminating: Any, wait: Any, wait_later: Any) -> None:
    plan = drain.plan(verdicts)

    assert names(plan.evict) == evict
    assert names(plan.evict_later) == later
    assert names(plan.terminating) == terminating
    assert names(plan.wait) == wait
    assert names(plan.wait_later) == wait_later


_VERDICTS = st.lists(
    st.builds(
        verdict,
        st.text("abcdef", min_size=1, max_size=6),
        st.sampled_from(["Drain", "Skip", "WaitCompleted"]),
        st.integers(-5, 5),
        deleted=st.booleans(),
    ),
    max_size=12,
)


@given(_VERDICTS)
def test_every_pod_that_must_go_is_in_exactly_one_place_of_the_plan(verdicts: list[Verdict]) -> None:
    plan = drain.plan(verdicts)
    placed = names((*plan.evict, *plan.evict_later, *plan.terminating, *plan.wait, *plan.wait_later))

    assert sorted(placed) == sorted(v.pod.key.name for v in verdicts if v.behavior is not Behavior.SKIP)


@given(_VERDICTS)
def test_nothing_is_evicted_while_something_of_a_lower_order_is_there(verdicts: list[Verdict]) -> None:
    plan = drain.plan(verdicts)
    there = [v.order for v in verdicts if v.behavior is not Behavior.SKIP]

    assert all(v.order == min(there) for v in plan.evict)


def keys(*items: str) -> tuple[ObjectKey, ...]:
    return tuple(ObjectKey("default", i) for i in items)


def test_the_message_names_every_group_in_order() -> None:
    plan = DrainPlan(terminating=keys("a"), wait=keys("w"), evict_later=keys("l1", "l2"), wait_later=keys("x"))
    budget = "Cannot evict pod as it would violate the pod's disruption budget. needs 3"
    progress = DrainProgress(plan, keys("b"), {"webhook died": keys("d"), budget: keys("c", "c2")})

    assert progress.message(NOW) == (
        "Drain not completed yet (started at 2026-05-01T12:00:00Z):\n"
        "* Pods default/a, default/b: deletionTimestamp set, but still not removed from the Node\n"
        "* Pods default/c, default/c2: cannot evict pod as it would violate the pod's disruption budget. needs 3\n"
        "* Pod default/d: failed to evict Pod, webhook died\n"
        "* Pod default/w: waiting for completion\n"
        "After above Pods have been removed from the Node, the following Pods will be evicted: default/l1, default/l2\n"
        "After above Pods have been removed from the Node, waiting for the following Pods to complete without eviction: default/x"
    )


@pytest.mark.parametrize(
    ("failures", "last"),
    [(6, "* 1 Pod with other issues"), (7, "* 2 Pods with other issues"), (5, "* Pod default/p4: failed to evict Pod, error 4")],
)
def test_at_most_five_failures_are_listed_separately(failures: int, last: str) -> None:
    failed = {f"error {n}": keys(f"p{n}") for n in range(failures)}

    assert DrainProgress(DrainPlan(), (), failed).message(NOW).splitlines()[-1] == last


@pytest.mark.parametrize(
    ("plan", "evicted", "failed", "completed"),
    [
        pytest.param(DrainPlan(), (), {}, True, id="nothing-left"),
        pytest.param(DrainPlan(evict=(verdict("a"),)), (), {}, True, id="all-were-gone-already"),
        pytest.param(DrainPlan(), keys("a"), {}, False, id="evicted-now"),
        pytest.param(DrainPlan(), (), {"x": keys("a")}, False, id="hindered"),
        pytest.param(DrainPlan(terminating=keys("a")), (), {}, False, id="terminating"),
        pytest.param(DrainPlan(wait=keys("a")), (), {}, False, id="waiting"),
        pytest.param(DrainPlan(evict_later=keys("a")), (), {}, False, id="queued"),
        pytest.param(DrainPlan(wait_later=keys("a")), (), {}, False, id="waited-for-later"),
    ],
)
def test_a_drain_is_complete_when_nothing_is_left(plan: DrainPlan, evicted: Any, failed: Any, completed: bool) -> None:
    assert DrainProgress(plan, evicted, failed).completed is completed


def error(code: int, message: str, reason: str = "", causes: Any = None) -> Any:
    import msgspec

    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "code": code, "message": message, "reason": reason}
    if causes is not None:
        status["details"] = {"causes": causes}
    return from_response(code, msgspec.json.encode(status))


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        pytest.param(error(404, "gone"), None, id="gone-is-no-failure"),
        pytest.param(error(429, "budget.", causes=[{"reason": "DisruptionBudget", "message": "needs 3"}]), "budget. needs 3", id="budget"),
        pytest.param(error(429, "slow down"), "slow down", id="throttled"),
        pytest.param(
            error(403, "no", causes=[{"reason": "NamespaceTerminating"}]),
            "Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)",
            id="namespace-terminating",
        ),
        pytest.param(error(403, "not allowed"), "not allowed", id="forbidden"),
        pytest.param(error(500, "webhook died"), "webhook died", id="server-error"),
    ],
)
def test_a_failed_eviction_has_a_reason(failure: Any, text: str | None) -> None:
    assert drain.eviction_failure(failure) == text


def test_the_shortest_grace_period_is_asked_for_on_an_unreachable_node_only() -> None:
    key = ObjectKey("web", "a")

    assert drain.eviction_body(key, unreachable=True)["deleteOptions"] == {"gracePeriodSeconds": 1}
    assert "deleteOptions" not in drain.eviction_body(key, unreachable=False)


def test_facts_of_a_pod() -> None:
    import msgspec

    pod = decode(
        Pod,
        msgspec.json.encode(
            {
                "metadata": {
                    "name": "p",
                    "namespace": "web",
                    "annotations": {"kubernetes.io/config.mirror": "x"},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "u", "controller": True}],
                },
                "spec": {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "data"}}]},
                "status": {"phase": "Running"},
            }
        ),
    )

    facts = drain.describe(pod, daemon_set_exists=True)

    assert drain.daemon_set_of(pod) == ObjectKey("web", "ds")
    assert (facts.mirror, facts.controlled, facts.local_storage, facts.claims, facts.finished) == (True, True, True, ("data",), False)


def test_claims_of_skipped_pods_only() -> None:
    skipped = Verdict(a_pod("s", claims=("data",)), Behavior.SKIP)
    evicted = Verdict(a_pod("e", claims=("more",)), Behavior.DRAIN)

    assert drain.skipped_claims([skipped, evicted]) == {ObjectKey("default", "data")}
