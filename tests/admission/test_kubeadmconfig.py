"""Edge cases 106 to 112 of the KubeadmConfig spec; what was recorded is replayed in test_recorded."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from clusterwright.admission import chain
from clusterwright.admission.kubeadmconfigspec import kubeadm_config_spec
from clusterwright.admission.rule import Review, judge
from clusterwright.api.crds import crds
from clusterwright.api.wellknown import TOPOLOGY_DRY_RUN_ANNOTATION
from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.status import ErrorType, FieldError
from clusterwright.runtime.errors import Invalid
from clusterwright.runtime.rest import RestClient

ON, OFF = {"KubeadmBootstrapFormatIgnition": True}, {"KubeadmBootstrapFormatIgnition": False}
DEFINITIONS = [c for c in crds() if c["spec"]["group"] == "bootstrap.cluster.x-k8s.io"]


class Refused(Exception):
    """The fields that an API server complained about."""


async def _server(features: Mapping[str, bool]) -> RestClient:
    server = ApiServer(now=lambda: datetime(2030, 1, 1, tzinfo=UTC), random=random.Random(1), admission=chain(features))
    client = RestClient(InProcessTransport(server), clock=None)
    for definition in DEFINITIONS:
        await client.create(definition)
    return client


def _object(spec: Any, kind: str = "KubeadmConfig", **metadata: Any) -> dict[str, Any]:
    if kind == "KubeadmConfigTemplate":
        spec = {"template": {"spec": spec} if spec else {"metadata": {"labels": {"a": "b"}}}}
    head = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"namespace": "default", "name": "x"} | metadata}
    return head | ({"spec": spec} if spec else {})


async def _verdicts(spec: Any, features: Mapping[str, bool]) -> set[str]:
    """The fields that are refused: the same for both kinds, on create and on update."""
    client = await _server(features)
    found: list[set[str]] = []
    for kind, prefix in (("KubeadmConfig", "spec"), ("KubeadmConfigTemplate", "spec.template.spec")):
        made = await client.create(_object(None, kind, name="there"))
        update = _object(spec, kind, name="there", resourceVersion=made.metadata.resource_version)
        for write in (client.create(_object(spec, kind)), client.update(update)):
            try:
                await write
                found.append(set())
            except Invalid as error:
                causes = error.status["details"]["causes"]
                found.append({c["field"].replace(prefix, "spec", 1) for c in causes})
    assert all(f == found[0] for f in found), found
    return found[0]


def problems(spec: Any, *, control_plane: bool = False) -> list[FieldError]:
    rules = kubeadm_config_spec("KC-1", ("spec",), control_plane=control_plane)
    return judge(rules, Review(operation="CREATE", new={"spec": spec}))


SOURCE = {"secret": {"name": "n", "key": "k"}}
DISK = {"device": "/dev/a"}


@pytest.mark.parametrize(
    "spec",
    [
        {"files": [{"path": "/a", "content": "x"}]},
        {"files": [{"path": "/a", "contentFrom": SOURCE}]},
        {"users": [{"name": "u", "passwd": "x"}]},
        {"users": [{"name": "u", "passwdFrom": SOURCE}]},
    ],
)
async def test_valid_specs_are_accepted(spec: Any) -> None:
    assert await _verdicts(spec, OFF) == set()


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"files": [{"path": "/a", "content": "x", "contentFrom": SOURCE}]}, {"spec.files[0]"}),
        ({"files": [{"path": "/a", "content": "x"}, {"path": "/a", "content": "y"}]}, {"spec.files[1].path"}),
        ({"users": [{"name": "u", "passwd": "x", "passwdFrom": SOURCE}]}, {"spec.users[0]"}),
    ],
)
async def test_invalid_specs_are_refused(spec: Any, fields: set[str]) -> None:
    assert await _verdicts(spec, OFF) == fields


@pytest.mark.parametrize("what", ["files", "users"])
@pytest.mark.parametrize("missing", ["name", "key"])
def test_a_source_must_be_complete(what: str, missing: str) -> None:
    """The schema says so first; the rule stands for itself."""
    key = {"files": "contentFrom", "users": "passwdFrom"}[what]
    secret = {k: v for k, v in SOURCE["secret"].items() if k != missing}

    (problem,) = problems({what: [{"path": "/a", key: {"secret": secret}}]})

    assert (problem.type, problem.field) == (ErrorType.REQUIRED, f"spec.{what}[0].{key}.secret.{missing}")


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"format": "cloud-config", "ignition": {"containerLinuxConfig": {"strict": True}}}, {"spec.format"}),
        ({"format": "ignition"}, set()),
        ({"format": "ignition", "users": [{"name": "u", "inactive": True}]}, {"spec.users[0].inactive"}),
        (
            {"format": "ignition", "diskSetup": {"partitions": [DISK | {"layout": True, "tableType": "mbr"}]}},
            {"spec.diskSetup.partitions[0].tableType"},
        ),
        (
            {"format": "ignition", "diskSetup": {"filesystems": [DISK | {"filesystem": "ext4", "replaceFS": "x"}]}},
            {"spec.diskSetup.filesystems[0].replaceFS"},
        ),
        (
            {"format": "ignition", "diskSetup": {"filesystems": [DISK | {"filesystem": "ext4", "partition": "x"}]}},
            {"spec.diskSetup.filesystems[0].partition"},
        ),
        ({"format": "ignition", "files": [{"path": "/a", "encoding": "gzip", "content": "x"}]}, {"spec.files[0].encoding"}),
        ({"format": "ignition", "files": [{"path": "/a", "encoding": "gzip+base64", "content": "x"}]}, {"spec.files[0].encoding"}),
        ({"format": "ignition", "bootCommands": ["x"]}, {"spec.bootCommands"}),
        ({"format": "cloud-config", "bootCommands": ["x"]}, set()),
    ],
)
async def test_fields_behind_a_gate_are_accepted_while_it_is_on(spec: Any, fields: set[str]) -> None:
    assert await _verdicts(spec, ON) == fields


@pytest.mark.parametrize(
    ("spec", "fields"),
    [({"format": "ignition"}, {"spec.format"}), ({"ignition": {"containerLinuxConfig": {"strict": True}}}, {"spec.ignition"})],
)
async def test_fields_behind_a_gate_are_refused_while_it_is_off(spec: Any, fields: set[str]) -> None:
    assert await _verdicts(spec, OFF) == fields


def _timeouts(**seconds: int) -> dict[str, Any]:
    return {f"{k}Configuration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": v}} for k, v in seconds.items()}


@pytest.mark.parametrize("spec", [_timeouts(init=1), _timeouts(join=1), _timeouts(init=1, join=1), _timeouts(init=1, join=2)])
async def test_health_checks_may_differ_here(spec: Any) -> None:
    assert await _verdicts(spec, OFF) == set()


@pytest.mark.parametrize(
    ("spec", "bad"), [(_timeouts(init=1), True), (_timeouts(init=1, join=2), True), (_timeouts(init=1, join=1), False), ({}, False)]
)
def test_health_checks_of_control_planes_may_not_differ(spec: Any, bad: bool) -> None:
    assert bool(problems(spec, control_plane=True)) is bad


@pytest.mark.parametrize(("parts", "bad"), [((60, 40), False), ((50,), False), ((60, 50), True)])
async def test_disk_layouts_of_a_node_are_rendered(parts: tuple[int, ...], bad: bool) -> None:
    layout = [{"percentage": p} for p in parts]
    expected = {"spec.diskSetup.partitions[0].diskLayout"} if bad else set()

    assert await _verdicts({"diskSetup": {"partitions": [DISK | {"diskLayout": layout}]}}, OFF) == expected


@pytest.mark.parametrize(
    ("metadata", "bad"),
    [
        (None, False),
        ({"labels": {"foo": "$invalid-key"}}, True),
        ({"labels": {"foo": "x" * 64}}, True),
        ({"labels": {"/invalid-key": "foo"}}, True),
        ({"annotations": {"/invalid-key": "foo"}}, True),
    ],
)
async def test_metadata_of_templates_are_validated(metadata: Any, bad: bool) -> None:
    client = await _server(OFF)
    obj = _object(None, "KubeadmConfigTemplate")
    obj["spec"] = {"template": {"metadata": metadata} if metadata else {"spec": {"verbosity": 1}}}

    if bad:
        with pytest.raises(Invalid):
            await client.create(obj)
    else:
        await client.create(obj)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("annotated", [True, False])
async def test_former_defaults_only_for_the_topology_s_dry_run(dry_run: bool, annotated: bool) -> None:
    client = await _server(OFF)
    obj = _object({"verbosity": 1}, "KubeadmConfigTemplate", **({"annotations": {TOPOLOGY_DRY_RUN_ANNOTATION: ""}} if annotated else {}))
    path = "/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmconfigtemplates"
    request = Request(
        method="POST",
        path=path,
        query=(("dryRun", "All"),) if dry_run else (),
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(obj),
    )

    answer = msgspec.json.decode((await client.transport.send(request)).body)

    spec = answer["spec"]["template"]["spec"]
    assert (spec != {"verbosity": 1}) is (dry_run and annotated)
    if dry_run and annotated:
        assert spec["format"] == "cloud-config"
        assert spec["initConfiguration"] == spec["joinConfiguration"] == {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}
