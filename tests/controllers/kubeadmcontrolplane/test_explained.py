"""A recorded bundle knows the workload cluster, so that what is explained offline is what the controllers see."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from clusterwright import app
from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wire import Transport
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import UNOBSERVED, Answer, explain
from clusterwright.offline.record import probe_as_said, record
from clusterwright.offline.survey import Surveyor
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.keys import sample_keys

from .scenario import KEY, ControlPlane, play

SUBJECT = f"KubeadmControlPlane/{KEY}"


async def recorded(plane: ControlPlane, *, reachable: bool = True, keep_secrets: bool = False) -> list[Json]:
    connect = app.connector(plane.cloud, None)

    async def reach(kubeconfig: bytes) -> Transport:
        if not reachable:
            raise ConnectionFailed("no route")
        return await connect(KEY, kubeconfig)

    surveyor = Surveyor(plane.world.client, reach, clock=plane.world.clock, random=Random(1), keys=sample_keys())
    return await record(plane.world.client, KEY, plane.world.clock.now(), surveyor, keep_secrets=keep_secrets)


@pytest.fixture(scope="module")
def bundles() -> dict[str, list[Json]]:
    """What is recorded of one control plane of three: in several ways while it is well, and after a member has stopped."""
    found: dict[str, list[Json]] = {}

    async def story(plane: ControlPlane) -> None:
        await plane.until_settled(3)
        found["with secrets"] = await recorded(plane, keep_secrets=True)
        found["without secrets"] = await recorded(plane)
        found["unreachable"] = await recorded(plane, reachable=False)
        await plane.break_machine((await plane.machines())[0].metadata.name, "etcd-stops")
        await plane.world.clock.sleep(600)
        found["stopped"] = await recorded(plane)

    with pytest.MonkeyPatch.context() as monkeypatch:
        assert play(1, story, replicas=3, monkeypatch=monkeypatch).violation is None
    return found


def rows(answer: Answer) -> dict[str, str]:
    return {t.table: t.decision.row for t in answer.tables}


@pytest.mark.parametrize("how", ["with secrets", "without secrets"])
def test_a_healthy_control_plane_is_explained_as_its_controller_sees_it(bundles: dict[str, list[Json]], how: str) -> None:
    answer = explain(assemble(bundles[how]), SUBJECT)

    assert answer.error == ""
    assert answer.causes == []
    assert answer.notes == []
    assert answer.actions == []
    assert rows(answer)["Available"] == "available"
    assert rows(answer)["EtcdClusterHealthy"] == "healthy"


def test_a_member_that_has_stopped_is_seen(bundles: dict[str, list[Json]]) -> None:
    documents = bundles["stopped"]

    members = documents[-1]["workloadClusters"][str(KEY)]["etcdMembers"]
    answer = explain(assemble(documents), SUBJECT)

    assert len(members) == 3
    assert rows(answer)["Available"] == "degraded"
    assert rows(answer)["ControlPlaneComponentsHealthy"] == "not-healthy"
    assert answer.causes


def test_an_unreachable_cluster_is_left_out_of_a_bundle_and_reported(bundles: dict[str, list[Json]]) -> None:
    documents = bundles["unreachable"]

    answer = explain(assemble(documents), SUBJECT)

    assert "workloadClusters" not in documents[-1]
    assert answer.notes == [UNOBSERVED]
    assert answer.causes == []


def test_no_secret_is_in_a_bundle_that_is_written_down(bundles: dict[str, list[Json]]) -> None:
    with_secrets = bundles["with secrets"]
    without = msgspec.json.encode(bundles["without secrets"]).decode()

    objects = [*with_secrets, *with_secrets[-1]["workloadClusters"][str(KEY)]["objects"]]
    secrets = [o for o in objects if o["kind"] == "Secret"]
    values = {v for o in secrets for k, v in (o.get("data") or {}).items() if k in ("tls.key", "value", "token-secret")}
    assert {o["type"] for o in secrets} >= {"cluster.x-k8s.io/secret", "bootstrap.kubernetes.io/token"}
    assert len(values) >= 8
    assert [v for v in values if v in without] == []


def test_a_recorded_probe_failure_is_kept() -> None:
    """That we can connect does not mean that the controller could."""
    message = "Remote connection probe failed, probe last succeeded at 2020-01-02T03:04:05Z"
    probe = {"type": "RemoteConnectionProbe", "status": "False", "reason": "ProbeFailed", "message": message}

    failing = probe_as_said(Unstructured({"kind": "Cluster", "status": {"conditions": [probe]}}))
    never = probe_as_said(
        Unstructured({"kind": "Cluster", "status": {"conditions": [probe | {"message": "Remote connection probe failed"}]}})
    )
    fine = probe_as_said(Unstructured({"kind": "Cluster", "status": {"conditions": [probe | {"status": "True"}]}}))

    assert failing == {"lastProbeSuccess": "2020-01-02T03:04:05Z", "consecutiveFailures": 5}
    assert never == {"lastProbeSuccess": None, "consecutiveFailures": 5}
    assert fine == {}
