from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.api.bootstrap import (
    Arg,
    BootstrapToken,
    Discovery,
    JoinConfiguration,
    JoinControlPlane,
    KubeadmConfig,
    KubeadmConfigSpec,
    NodeRegistrationOptions,
)
from clusterwright.api.codec import DecodeError, convert, decode, encode, to_json
from clusterwright.api.controlplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneDeprecatedStatus,
    KubeadmControlPlaneStatus,
    KubeadmControlPlaneV1Beta1DeprecatedStatus,
)
from clusterwright.api.core import (
    Bootstrap,
    Cluster,
    ClusterClassRef,
    ClusterInitializationStatus,
    ClusterSpec,
    ClusterStatus,
    Machine,
    MachineDeletionSpec,
    MachineSpec,
    MachineStatus,
    ReplicaCounters,
    Topology,
)
from clusterwright.api.infrastructure import DevMachine, DevMachineBackend, DevMachineSpec, InMemoryMachineBackend
from clusterwright.api.kubernetes import ConfigMap, EnvVar, Lease, Node, Pod, PodSpec, Secret, VolumeAttachment
from clusterwright.api.machine_setup import File, User
from clusterwright.api.meta import Condition, ObjectMeta
from clusterwright.api.scheme import SCHEME

NOON = datetime(2024, 2, 29, 12, 0, 0, tzinfo=UTC)


def test_api_version_and_kind_are_always_written() -> None:
    assert to_json(Machine()) == {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}


@pytest.mark.parametrize("resource", SCHEME.resources, ids=lambda resource: f"{resource.kind}.{resource.group}")
def test_every_kind_survives_a_round_trip_empty(resource: object) -> None:
    model = resource.model  # type: ignore[attr-defined]
    empty = model()
    assert decode(model, encode(empty)) == empty
    assert to_json(empty)["kind"] == resource.kind  # type: ignore[attr-defined]


def test_zero_values_of_class_v_and_empty_objects_of_class_z_are_dropped_from_the_inside_out() -> None:
    machine = Machine(
        spec=MachineSpec(cluster_name="", version="", deletion=MachineDeletionSpec(), taints=(), bootstrap=Bootstrap()),
        status=MachineStatus(conditions=(), phase=""),
    )
    assert to_json(machine) == to_json(Machine())
    cluster = Cluster(
        spec=ClusterSpec(topology=Topology(class_ref=ClusterClassRef())), status=ClusterStatus(initialization=ClusterInitializationStatus())
    )
    assert to_json(cluster) == to_json(Cluster())


def test_class_p_keeps_zero_apart_from_absent() -> None:
    cluster = Cluster(
        spec=ClusterSpec(paused=False), status=ClusterStatus(control_plane=ReplicaCounters(), workers=ReplicaCounters(replicas=0))
    )
    assert to_json(cluster)["spec"] == {"paused": False}
    assert to_json(cluster)["status"] == {"controlPlane": {}, "workers": {"replicas": 0}}
    assert decode(Cluster, encode(cluster)) == cluster


def test_the_bootstrap_of_a_pool_machine_stays_on_the_wire() -> None:
    assert to_json(Machine(spec=MachineSpec(bootstrap=Bootstrap(data_secret_name=""))))["spec"] == {"bootstrap": {"dataSecretName": ""}}


def test_no_taints_and_the_default_taints_are_told_apart() -> None:
    assert to_json(NodeRegistrationOptions(taints=())) == {"taints": []}
    assert to_json(NodeRegistrationOptions()) == {}
    assert decode(NodeRegistrationOptions, b'{"taints":[]}').taints == ()
    assert decode(NodeRegistrationOptions, b"{}").taints is None


def test_an_empty_join_control_plane_means_a_control_plane_join() -> None:
    assert to_json(JoinConfiguration(control_plane=JoinControlPlane())) == {"controlPlane": {}}
    assert decode(JoinConfiguration, b'{"controlPlane":{}}').control_plane == JoinControlPlane()


def test_a_required_argument_value_may_be_empty() -> None:
    assert to_json(Arg(name="v", value="")) == {"name": "v", "value": ""}


def test_legacy_counters_are_always_written() -> None:
    legacy = KubeadmControlPlaneDeprecatedStatus(v1beta1=KubeadmControlPlaneV1Beta1DeprecatedStatus(ready_replicas=1))
    status = to_json(KubeadmControlPlane(status=KubeadmControlPlaneStatus(deprecated=legacy)))["status"]
    assert status == {"deprecated": {"v1beta1": {"readyReplicas": 1, "unavailableReplicas": 0, "updatedReplicas": 0}}}


def test_an_empty_backend_is_a_choice() -> None:
    machine = DevMachine(spec=DevMachineSpec(backend=DevMachineBackend(in_memory=InMemoryMachineBackend())))
    assert to_json(machine)["spec"] == {"backend": {"inMemory": {}}}


def test_conditions_have_all_their_fields() -> None:
    condition = Condition(type="Ready", status="True", last_transition_time=NOON)
    assert to_json(condition) == {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2024-02-29T12:00:00Z",
        "reason": "",
        "message": "",
    }


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    for moment in (NOON + timedelta(microseconds=999_999), NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))):
        assert to_json(ObjectMeta(creation_timestamp=moment)) == {"creationTimestamp": "2024-02-29T12:00:00Z"}


@settings(max_examples=100, deadline=None)
@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_time_read_back_is_the_time_cut_to_its_second(moment: datetime) -> None:
    raw = encode(Machine(metadata=ObjectMeta(creation_timestamp=moment)))
    assert decode(Machine, raw).metadata.creation_timestamp == moment.replace(microsecond=0)


def test_microsecond_times_of_leases_pass_unchanged() -> None:
    raw = b'{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"2024-02-29T12:00:00.123456Z"}}'
    assert msgspec.json.decode(encode(decode(Lease, raw)))["spec"] == {"renewTime": "2024-02-29T12:00:00.123456Z"}


def test_null_means_absent_at_any_depth() -> None:
    raw = b'{"metadata":{"labels":null},"spec":{"version":null,"taints":[{"key":"k","value":null}],"deletion":null}}'
    machine = decode(Machine, raw)
    assert machine.spec.version == ""
    assert machine.spec.taints[0].key == "k"
    assert machine.spec.deletion is None
    assert convert(msgspec.json.decode(raw), Machine) == machine


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b'{"spec":{"taints":[{},{"key":3}]}}', "$.spec.taints[1].key"),
        (b'{"spec":{"version":null,"taints":"x"}}', "$.spec.taints"),
        (b'{"metadata":{"creationTimestamp":"yesterday"}}', "$.metadata.creationTimestamp"),
        (b'{"metadata":', "$"),
        (b"\xff", "$"),
        (b"[]", "$"),
    ],
)
def test_a_value_of_a_wrong_type_is_named_with_its_path(raw: bytes, path: str) -> None:
    with pytest.raises(DecodeError, match="Machine: ") as caught:
        decode(Machine, raw)
    assert caught.value.path == path


def test_decode_errors_do_not_quote_values() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Secret, b'{"data":{"password":"not-base64-but-secret!"}}')
    assert "not-base64" not in str(caught.value)


def test_data_of_secrets_is_bytes() -> None:
    secret = Secret(metadata=ObjectMeta(name="s", namespace="n"), data={"k": b"\x00v"})
    assert to_json(secret)["data"] == {"k": "AHY="}
    assert decode(Secret, encode(secret)) == secret


def test_credentials_do_not_show_in_a_repr() -> None:
    hidden = "hunter2"
    shown = [
        Secret(metadata=ObjectMeta(name="s"), string_data={"k": hidden}, data={"k": hidden.encode()}),
        KubeadmConfig(
            spec=KubeadmConfigSpec(files=(File(path="/p", content=hidden),), users=(User(name="u", passwd=hidden),)),
        ),
        BootstrapToken(token=hidden),
        Discovery(tls_bootstrap_token=hidden),
        EnvVar(name="E", value=hidden),
    ]
    for value in shown:
        assert hidden not in repr(value)
    assert repr(shown[0]) == "Secret(s)"


def test_the_result_of_to_json_may_be_changed() -> None:
    labels = {"a": "b"}
    config = ConfigMap(metadata=ObjectMeta(labels=labels))
    to_json(config)["metadata"]["labels"]["a"] = "c"
    assert labels == {"a": "b"}
    node, other = to_json(Node()), to_json(Node())
    node["spec"]["x"] = 1
    assert other["spec"] == {}
    first, second = to_json(VolumeAttachment()), to_json(VolumeAttachment())
    first["spec"]["source"]["x"] = 1
    assert second["spec"]["source"] == {}


def test_equal_objects_are_written_alike() -> None:
    """Whether a part is the class's own default or an equal one that was read makes no difference."""
    assert to_json(DevMachine()) == to_json(DevMachine(spec=DevMachineSpec(backend=DevMachineBackend())))
    assert to_json(Machine()) == to_json(Machine(spec=MachineSpec(bootstrap=Bootstrap()), status=MachineStatus()))
    assert to_json(Pod()) == to_json(Pod(spec=PodSpec()))
    assert to_json(decode(DevMachine, b'{"spec":{"backend":{}}}')) == to_json(DevMachine())
