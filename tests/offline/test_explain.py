"""Explanations, recordings and the printed tables."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from clusterwright.api.crds import crds
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli.main import main
from clusterwright.offline.bundle import BadBundle, assemble
from clusterwright.offline.catalogue import tables_of
from clusterwright.offline.explain import explain as explained
from clusterwright.offline.graph import sinks
from clusterwright.offline.record import record, redacted
from clusterwright.runtime.rest import RestClient
from tools import docs

WORLDS = Path(__file__).resolve().parents[1] / "worlds"
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ETCD = str(WORLDS / "etcd-never.json.gz")


# ------------------------------------------------------------------------------------------------- explain


def test_a_condition_is_explained_by_its_table_with_every_guards_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cluster/etcd-never", "ControlPlaneAvailable", "--from", ETCD]) == 0

    out = capsys.readouterr().out
    assert " > mirrored" in out
    assert "+ controlPlane reports Available" in out
    assert "ControlPlaneAvailable=Unknown  InspectionFailed  Failed to get etcd members" in out


def test_a_condition_as_json_has_the_row_that_fired(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cluster/etcd-never", "available", "--from", ETCD, "-o", "json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    (table,) = answer["tables"]
    assert (table["table"], table["row"]) == ("Available", "unknowns")
    assert answer["rows"]["ControlPlaneInitialized"] == "already-initialized"


def test_the_chain_leads_from_the_cluster_to_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "cluster/etcd-never", "--from", ETCD, "-o", "json"])

    chain = json.loads(capsys.readouterr().out)["chain"]
    assert [link.split("/")[0] for link in chain] == ["Cluster", "KubeadmControlPlane", "Machine", "DevMachine"]


def test_a_machine_can_be_explained_too() -> None:
    world = _world("etcd-never")
    name = next(o["metadata"]["name"] for o in world["objects"] if o["kind"] == "Machine" and "-md-" not in o["metadata"]["name"])

    causes = explained(assemble(world["objects"]), f"Machine/w-etcd-never/{name}").causes

    assert [c["object"] for c in causes] == [f"DevMachine/w-etcd-never/{name}"]


@pytest.mark.parametrize("kind", ["Machine", "KubeadmControlPlane", "MachineDeployment", "DevMachine", "KubeadmConfig"])
def test_nothing_is_wrong_with_any_part_of_a_healthy_cluster(kind: str) -> None:
    world = _world("healthy-ha")
    for obj in world["objects"]:
        if obj["kind"] == kind:
            assert explained(assemble(world["objects"]), f"{kind}/w-healthy-ha/{obj['metadata']['name']}").causes == []


def _world(name: str) -> Any:
    return json.loads(gzip.decompress((WORLDS / f"{name}.json.gz").read_bytes()))


def test_the_tables_of_other_controllers_are_explained_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "kubeadmcontrolplane/etcd-never", "Available", "--from", ETCD]) == 0

    assert " > " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["cluster/nobody", "--from", ETCD], "cluster/nobody is not in the bundle"),
        (["cluster/etcd-never", "NoSuch", "--from", ETCD], "has no condition NoSuch; known ones: "),
        (["cluster/x", "--from", "/nowhere"], "/nowhere"),
    ],
    ids=["no subject", "no condition", "no file"],
)
def test_questions_without_an_answer_say_why(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 1

    assert text in capsys.readouterr().err


def test_a_bundle_of_yaml_documents_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.yaml"
    bundle.write_text(yaml.safe_dump_all(_world("paused-later")["objects"]))
    with bundle.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["explain", "clusters/paused-later", "--from", "-"]) == 0

    assert capsys.readouterr().out.startswith("Waiting: Cluster/w-paused-later/paused-later is paused by spec.paused")


def test_nothing_is_wrong_with_a_healthy_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cluster/healthy-ha", "--from", str(WORLDS / "healthy-ha.json.gz")]) == 0

    assert capsys.readouterr().out.startswith("Fine: nothing is wrong; ")


# ---------------------------------------------------------------------------------------------------- graph


def test_paths_end_in_sinks_and_cycles() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["b"], "d": [], "e": ["f"], "f": ["e"]}

    assert sorted(sinks(graph)) == [["d"], ["e", "f"]]


def test_a_long_chain_needs_no_deep_stack() -> None:
    graph = {str(n): [str(n + 1)] for n in range(20_000)} | {"20000": []}

    assert sinks(graph) == [["20000"]]


# --------------------------------------------------------------------------------------------------- record


def test_a_recording_holds_what_belongs_and_no_secret() -> None:
    documents = asyncio.run(_record())

    kinds = [d["kind"] for d in documents]
    assert {"Cluster", "Secret", "Observation", "Event", "CustomResourceDefinition"} <= set(kinds)
    assert "hunter2" not in json.dumps(documents)
    assert "stranger" not in json.dumps(documents)
    secret = next(d for d in documents if d["kind"] == "Secret")
    assert secret["data"] == {"value": ""}
    assert next(d for d in documents if d["kind"] == "Observation")["now"] == "2026-05-01T12:00:00Z"
    assert explained(assemble(documents), "Cluster/ns/c1").causes[0]["object"] == "Cluster/ns/c1"


async def _record() -> list[dict[str, Any]]:
    server = ApiServer(now=lambda: NOW, random=Random(1))
    client = RestClient(InProcessTransport(server))
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    for crd in crds():
        if crd["spec"]["names"]["kind"] in {"Cluster", "KubeadmConfig"}:
            await client.create(crd)
    label = {"cluster.x-k8s.io/cluster-name": "c1"}
    meta = {"namespace": "ns", "name": "c1"}
    await client.create(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": meta,
            "spec": {"paused": True, "controlPlaneEndpoint": {"host": "h", "port": 1}},
        }
    )
    secret = {"namespace": "ns", "name": "c1-kubeconfig", "labels": label}
    await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": {"value": "hunter2"}})
    await client.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "stranger"}, "stringData": {"a": "b"}}
    )
    config = {"files": [{"path": "/a", "content": "hunter2"}], "users": [{"name": "u", "passwd": "hunter2"}]}
    await client.create(
        {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "metadata": {"namespace": "ns", "name": "k", "labels": label},
            "spec": config,
        }
    )
    involved = {"kind": "Cluster", "namespace": "ns", "name": "c1"}
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": "ns", "name": "e"},
            "involvedObject": involved,
            "reason": "R",
            "message": "m",
            "type": "Normal",
        }
    )
    return await record(client, ObjectKey("ns", "c1"), NOW)


def test_redaction_keeps_what_explains_and_drops_what_tells() -> None:
    obj = {
        "kind": "KubeadmConfig",
        "metadata": {
            "name": "k",
            "managedFields": [{}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "a": "b"},
        },
        "spec": {"joinConfiguration": {"discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "h:1"}}}},
    }

    clean = redacted(obj)

    assert clean["metadata"] == {"name": "k", "annotations": {"a": "b"}}
    assert clean["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"] == {"token": "<redacted>", "apiServerEndpoint": "h:1"}


# --------------------------------------------------------------------------------------------- tables, docs


def test_every_table_is_printed_row_by_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "cluster", "-o", "json"]) == 0

    printed = json.loads(capsys.readouterr().out)["tables"]
    assert {t["name"]: [r["name"] for r in t["rows"]] for t in printed} == {t.name: list(t.row_names) for t in tables_of("cluster")}


def test_one_table_can_be_named_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "cluster/remoteconnectionprobe"]) == 0

    assert "| `lost` |" in capsys.readouterr().out


def test_a_table_that_is_not_there_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "nonsense"]) == 2

    assert "cluster/Available" in capsys.readouterr().err


def test_pages_are_rendered_once_and_then_fresh(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("stale")

    assert docs.run(["--check", "--folder", str(tmp_path)]) == 1
    assert docs.run(["--folder", str(tmp_path)]) == 0
    assert docs.run(["--check", "--folder", str(tmp_path)]) == 0
    assert not (tmp_path / "old.md").exists()
    assert "`already-initialized`" in (tmp_path / "cluster.md").read_text()


@pytest.mark.parametrize("value", ["\ud800", object()], ids=["half a surrogate pair", "an object"])
def test_what_no_json_can_hold_is_refused_by_name(value: Any) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "c"}, "data": {"a": value}}

    with pytest.raises(BadBundle, match="document 0: ConfigMap"):
        assemble([obj])
