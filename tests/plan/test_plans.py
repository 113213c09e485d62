"""A plan on a captured cluster: what it tells of a change, and that it changes nothing."""

from __future__ import annotations

import asyncio
import base64
import json
from functools import cache
from importlib.resources import files

import msgspec
import pytest

from clusterwright.api.meta import Json
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.plan import Apply, Captured, Delete, Edit, Outcome, Plan, plan
from clusterwright.plan.reading import moved
from clusterwright.plan.words import as_markdown, as_text
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from clusterwright.testing import run_virtual, virtual_plane
from support.plans import CLUSTER, CONTROL_PLANE, DEPLOYMENT, MACHINE, Counting, captured, key


async def _cluster(p: Plane) -> None:
    await p.apply(samples.cluster("c", has_control_plane_object=True))
    await p.apply(samples.control_plane("c", replicas=1, seconds=10, version="v1.34.0"))
    await p.apply(samples.workers("c", "w", replicas=2, seconds=10, version="v1.34.0"))
    await p.until_available("c", control_plane=1, workers=2, within=3600)
    await asyncio.sleep(30)


@cache
def _read() -> tuple[Captured, Counting, list[bytes]]:
    """Return a capture, the transport that read it, and the secret values of the plane."""

    async def main() -> tuple[Captured, Counting, list[bytes]]:
        async with virtual_plane() as p:
            await _cluster(p)
            transport = Counting(InProcessTransport(p.server))
            before = p.server.store.revision
            made = await captured(p, transport=transport)
            assert p.server.store.revision == before
            secrets = [msgspec.json.decode(e.raw) for e in p.server.store.table("secrets").objects.values()]
            return made, transport, [base64.b64decode(v) for s in secrets for v in (s.get("data") or {}).values()]

    return run_virtual(main())


@cache
def _upgraded() -> Plan:
    return plan(_read()[0], [_upgrade()], runs=1)


def _upgrade(version: str = "v1.34.1") -> Edit:
    return Edit(DEPLOYMENT, key("w"), (("spec.template.spec.version", version),))


def test_a_capture_only_reads():
    _, transport, _ = _read()
    assert set(transport.methods) == {"GET"}


def test_a_capture_reads_the_values_of_no_secret_but_the_kubeconfig():
    _, transport, secrets = _read()
    whole = b"".join(body for name, body in zip(transport.secrets, transport.bodies, strict=True) if name != "c-kubeconfig")
    assert "c-kubeconfig" in transport.secrets
    assert len(secrets) > 8
    assert not [s for s in secrets if len(s) > 20 and base64.b64encode(s) in whole]


def test_nothing_is_planned_without_a_change():
    made = plan(_read()[0], [], runs=1)
    assert (made.outcome, made.to_json()["trace"], made.notes) == (Outcome.NOTHING, [], [])


def test_an_upgrade_replaces_machines_in_order_and_says_why():
    made = _upgraded()
    assert made.outcome is Outcome.REPLACEMENTS
    first, second = made.replaced
    assert first.ended is not None
    assert first.started < first.ended <= second.started + 1
    (rollout,) = made.rollouts
    assert (rollout.owner, rollout.reasons, rollout.surge, rollout.unavailable) == (
        "MachineDeployment/default/w", ["Version v1.34.0, v1.34.1 required"], 1, 0,
    )  # fmt: skip
    assert [t.name.partition("/")[0] for t in made.created] == ["MachineSet", "Machine", "Machine"] or made.created[0].at == 0.0
    assert made.duration.median == pytest.approx(44, abs=12)
    assert not made.stuck


def test_a_plan_takes_the_same_steps_every_time():
    assert plan(_read()[0], [_upgrade()], runs=1).to_json() == _upgraded().to_json()


def test_no_secret_is_shown():
    made = _upgraded()
    shown = (json.dumps(made.to_json()) + as_text(made) + as_markdown(made)).encode()
    assert not [s for s in _read()[2] if len(s) > 20 and (s in shown or base64.b64encode(s) in shown)]


def test_a_refusal_has_the_causes_of_the_api_server():
    made = plan(_read()[0], [Edit(CONTROL_PLANE, key("c"), (("spec.version", "v1.99.0"),))])
    assert made.outcome is Outcome.REFUSED
    assert made.refused[0].causes[0]["field"] == "spec.version"


def test_an_unknown_field_is_refused():
    made = plan(_read()[0], [Edit(CLUSTER, key("c"), (("spec.bogus", 1),))])
    assert 'unknown field "spec.bogus"' in made.refused[0].message


def test_a_missing_class_does_not_converge_and_explain_says_why():
    made = plan(_read()[0], [Apply(samples.topology("d", class_name="missing"))])
    assert made.refused or any("missing" in s.why + s.verdict for s in made.stuck)


def test_a_deletion_is_planned_to_its_end():
    made = plan(_read()[0], [Delete(CLUSTER, key("c"))], runs=1)
    assert {t.name for t in made.deleted} >= {
        "Cluster/default/c",
        "DevCluster/default/c",
        "KubeadmControlPlane/default/c",
        "MachineDeployment/default/w",
    }
    assert not [t for t in made.created if t.name.startswith("Machine/")]
    assert not made.stuck


def test_a_machine_that_boots_while_it_is_captured_boots_in_the_replica():
    async def main() -> Captured:
        async with virtual_plane() as p:
            await _cluster(p)
            await p.client.patch(DEPLOYMENT, key("w"), {"spec": {"replicas": 3}})
            await asyncio.sleep(6)
            machines = await p.client.list(MACHINE, namespace="default")
            assert [m for m in machines if m.at("spec", "bootstrap", "dataSecretName") and not m.at("status", "nodeRef")]
            return await captured(p)

    made = plan(run_virtual(main()), [Edit(DEPLOYMENT, key("w"), (("spec.replicas", 4),))], runs=1)
    assert not made.stuck
    assert sum(t.name.startswith("Machine/") for t in made.created) == 1


def _with_budget(made: Captured) -> Captured:
    """Return the capture with a Pod on the first worker, whose disruption budget never allows an eviction."""
    names = [o["metadata"]["name"] for o in made.workloads[key("c")] if o["kind"] == "Node"]
    node = min(name for name in names if name.startswith("w-"))
    labels = {"app": "x"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "default", "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "x", "image": "x"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }
    return Captured(made.objects, made.now, {key("c"): (*made.workloads[key("c")], pod, budget)}, made.features)


def test_a_drain_that_a_budget_blocks_is_told_and_never_ends():
    made = plan(_with_budget(_read()[0]), [Edit(DEPLOYMENT, key("w"), (("spec.replicas", 0),))], runs=1)
    (wait,) = [w for w in made.waits if w.kind == "drain"]
    assert wait.until is None
    assert "Pod default/x" in wait.why
    assert made.duration.median is None
    (verdict,) = {s.verdict for s in made.stuck}
    assert "x" in verdict


@pytest.mark.soak
def test_a_drain_with_a_timeout_ends_after_it():
    values = (("spec.template.spec.deletion.nodeDrainTimeoutSeconds", 1800), ("spec.replicas", 0))
    limited = Edit(DEPLOYMENT, key("w"), values)
    made = plan(_with_budget(_read()[0]), [limited], runs=1)
    (wait,) = [w for w in made.waits if w.kind == "drain"]
    assert wait.until is not None
    assert 1700 < wait.until - wait.since < 1900
    assert not made.stuck


def test_an_object_that_changes_meanwhile_is_named():
    async def main() -> tuple[list[str], list[str]]:
        async with virtual_plane() as p:
            await p.apply(samples.cluster("c"))
            await p.apply(samples.workers("c", "w", replicas=0))
            await asyncio.sleep(10)
            made, transport = await captured(p), InProcessTransport(p.server)
            before = await moved(transport, made, {"MachineDeployment/default/w"})
            await p.client.patch(CLUSTER, key("c"), {"spec": {"paused": True}})
            return before, await moved(transport, made, {"MachineDeployment/default/w"})

    assert run_virtual(main()) == ([], ["Cluster/default/c"])


def test_every_field_of_the_output_is_documented():
    schema = json.loads(files("clusterwright.plan").joinpath("schemas/plan.json").read_text())

    def check(value: object, known: Json, path: str) -> None:
        if "$ref" in known:
            known = schema["definitions"][known["$ref"].rpartition("/")[2]]
        if isinstance(value, dict) and "properties" in known:
            assert set(value) <= set(known["properties"]), path
            assert set(known["required"]) <= set(value), path
            for name, inner in value.items():
                check(inner, known["properties"][name], f"{path}.{name}")
        elif isinstance(value, list) and "items" in known:
            for inner in value:
                check(inner, known["items"], f"{path}[]")

    check(_upgraded().to_json(), schema, "")
    check(plan(_read()[0], [Edit(CLUSTER, key("c"), (("spec.x", 1),))]).to_json(), schema, "")
