"""What is read of a provider's release: objects, program, flags, webhooks, contract."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

import pytest

from clusterwright.providers import flags
from clusterwright.providers.deployment import BadRelease, Mount, Probe, Source, expanded, program, relocated
from clusterwright.providers.hooks import pointed
from clusterwright.providers.release import contract_problems, read
from clusterwright.providers.status import LONGEST_PAUSE, pause
from providers.conftest import NAME, NAMESPACE, crd, deployment, hook, objects


def test_a_release_is_ordered_and_what_cannot_run_here_is_left_out_with_a_reason() -> None:
    found = read(objects())

    assert [obj["kind"] for obj in found.objects] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingWebhookConfiguration",
    ]
    assert found.left_out == (
        "Service webhooks: the API server calls the process on loopback",
        "Issuer acme: certificates are made here",
        "Certificate serving: certificates are made here",
    )
    assert (found.name, found.provider, found.type, found.version) == (NAME, "acme", "InfrastructureProvider", "v1.2.3")
    assert (found.namespace, found.program.account, found.program.args) == (NAMESPACE, "acme", ("--leader-elect",))


def test_a_list_is_its_items() -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": objects()}

    assert read([whole]) == read(objects())


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ([], "there are no objects in it"),
        (["text"], "document 1 is not an object with apiVersion, kind and metadata.name"),
        ([objects()[0], {"apiVersion": "v1", "kind": "Secret", "metadata": {}}], "document 2 is not an object"),
        ([crd()], "there is no Deployment, and 0 ServiceAccounts"),
        (
            [deployment(), {**deployment(), "metadata": {"name": "second"}}],
            "several Deployments, acme-controller-manager, second: choose one",
        ),
        ([{**deployment(), "metadata": {"name": "x"}}], "no object has the label cluster.x-k8s.io/provider"),
        ([deployment(containers=[])], "has no containers"),
        ([deployment(containers=[{"name": "a"}, {"name": "b"}])], "has the containers a, b: choose one with --container"),
    ],
)
def test_a_release_that_cannot_be_used_is_refused_with_what_to_do(documents: list[Any], told: str) -> None:
    with pytest.raises(BadRelease, match=told.replace(".", r"\.")):
        read(documents, name="" if "label" in told else NAME)


@pytest.mark.parametrize("name", ["../up", "Acme", "", "a" * 64, "a/b"])
def test_a_name_that_is_no_dns_label_is_refused_because_it_becomes_a_path(name: str) -> None:
    release = [{**obj, "metadata": {**obj["metadata"], "labels": {}}} for obj in objects()]

    with pytest.raises(BadRelease):
        read(release, name=name)


@pytest.mark.parametrize(
    ("label", "group", "provider", "kind"),
    [
        ("bootstrap-acme", "", "acme", "BootstrapProvider"),
        ("control-plane-acme", "", "acme", "ControlPlaneProvider"),
        ("ipam-acme", "", "acme", "IPAMProvider"),
        ("addon-acme", "", "acme", "AddonProvider"),
        ("runtime-extension-acme", "", "acme", "RuntimeExtensionProvider"),
        ("helm", "addons.cluster.x-k8s.io", "helm", "AddonProvider"),
        ("acme", "acme.example.com", "acme", ""),
    ],
)
def test_the_type_comes_from_the_label_or_the_group(label: str, group: str, provider: str, kind: str) -> None:
    definition = crd()
    definition["spec"]["group"] = group

    found = read([deployment(), definition], name=label)

    assert (found.provider, found.type) == (provider, kind)


@pytest.mark.parametrize(
    ("label", "groups", "name"),
    [
        ("k0s", ["bootstrap.cluster.x-k8s.io"], "bootstrap-k0s"),
        ("k0s", ["controlplane.cluster.x-k8s.io", "k0s.example.com"], "control-plane-k0s"),
        ("infrastructure-k0s", ["bootstrap.cluster.x-k8s.io"], "infrastructure-k0s"),
        ("all-of-k0s", ["bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"], "all-of-k0s"),
        ("acme", ["acme.example.com"], "acme"),
    ],
)
def test_a_label_without_a_type_gets_that_of_its_kinds(label: str, groups: list[str], name: str) -> None:
    release = deployment()
    release["metadata"]["labels"] = {"cluster.x-k8s.io/provider": label}
    definitions = []
    for group in groups:
        definition = crd()
        definition["spec"]["group"] = group
        definitions.append(definition)

    assert read([release, *definitions]).name == name
    assert read([release, *definitions], name=label).name == label, "a name that is given counts"


def test_environment_volumes_and_probes_come_from_the_container() -> None:
    container = {
        "command": ["/manager", "--first"],
        "args": ["--v=2"],
        "env": [
            {"name": "A", "value": "x"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
        "envFrom": [{"secretRef": {"name": "all"}, "prefix": "P_"}],
        "ports": [{"name": "healthz", "containerPort": 9440}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}, "periodSeconds": 20, "failureThreshold": 5},
        "readinessProbe": {"tcpSocket": {"port": 8081}, "initialDelaySeconds": 3},
        "volumeMounts": [
            {"name": "cert", "mountPath": "/tmp/serving/"},
            {"name": "credentials", "mountPath": "/etc/acme"},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "host", "mountPath": "/host"},
        ],
    }
    volumes = [
        {"name": "cert", "secret": {"secretName": "webhook-cert"}},
        {"name": "credentials", "secret": {"secretName": "creds", "items": [{"key": "a", "path": "b.yaml"}]}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/"}},
    ]
    release = [obj for obj in objects() if obj["kind"] != "Deployment"]

    found = read([*release, deployment(container, volumes=volumes, terminationGracePeriodSeconds=600)]).program

    assert found.args == ("--first", "--v=2")
    assert found.env == {
        "A": Source(value="x"),
        "B": Source(kind="Secret", name="s", key="k", optional=True),
        "C": Source(kind="ConfigMap", name="c", key="k"),
        "D": Source(field="metadata.namespace"),
    }
    assert found.env_from == (Source(kind="Secret", name="all", value="P_"),)
    assert found.mounts == (
        Mount(path="/tmp/serving", kind="Certificate", name="webhook-cert"),
        Mount(path="/etc/acme", kind="Secret", name="creds", items={"a": "b.yaml"}),
        Mount(path="/tmp", kind=""),
    )
    assert found.missing == ("volume host (hostPath) is not there at /host",)
    assert found.liveness == Probe(port=9440, path="/healthz", period=20, failures=5)
    assert found.readiness == Probe(port=8081, initial_delay=3)
    assert found.grace == 20.0, "a plane that stops waits for its providers"


def test_the_main_container_is_found_and_others_are_named() -> None:
    containers = [{"name": "kube-rbac-proxy"}, {"name": "manager", "args": ["--a"]}]

    found = program(deployment(containers=containers, initContainers=[{"name": "prepare"}]))

    assert found.container == "manager"
    assert found.missing == ("container kube-rbac-proxy is not started", "init container prepare is not started")


def test_malformed_parts_of_a_deployment_do_not_crash() -> None:
    odd: list[Any] = [None, 5, "x", [], {}, [None], {"a": None}]
    for value in odd:
        for field in ("args", "command", "env", "envFrom", "volumeMounts", "ports", "livenessProbe", "readinessProbe"):
            program(deployment({field: value}))
        program(deployment(volumes=value))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("--file=/etc/acme/a.yaml", "--file=/data/1/a.yaml"),
        ("/etc/acme", "/data/1"),
        ("/etc/acme2/x", "/etc/acme2/x"),
        ("x/etc/acme/y", "x/etc/acme/y"),
        ("/tmp/deep/x:/tmp/y", "/data/3/x:/data/2/y"),
        ("https://example.com/tmp/x", "https://example.com/tmp/x"),
    ],
)
def test_paths_below_mounts_are_moved(text: str, result: str) -> None:
    assert relocated(text, {"/etc/acme": "/data/1", "/tmp": "/data/2", "/tmp/deep": "/data/3"}) == result


def test_references_are_expanded_as_kubernetes_does() -> None:
    assert expanded("--ns=$(NS) $$(NS) $(OTHER) $NS", {"NS": "x"}) == "--ns=x $(NS) $(OTHER) $NS"


_PFLAG = """Usage of manager:
      --feature-gates mapStringBool           A set of key=value pairs
  -v, --v Level                               number for the log level (default 2)
      --credentials-file string               path to the credentials (default "/etc/acme/credentials.yaml")
      --webhook-port int                      Webhook Server port (default 9443)
      --metrics-bind-addr string              The address the --diagnostics endpoint binds to
"""
_FLAG = """Usage of /manager:
  -health-probe-bind-address string
    \tThe address the probe endpoint binds to. (default ":8081")
  -leader-elect
    \tEnable leader election for controller manager.
  -config string
    \tThe file. (default "/etc/acme.yaml")
"""


def test_flags_are_read_from_both_libraries_of_go() -> None:
    assert list(flags.known(_PFLAG)) == ["feature-gates", "v", "credentials-file", "webhook-port", "metrics-bind-addr"]
    assert list(flags.known(_FLAG)) == ["health-probe-bind-address", "leader-elect", "config"]


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\n  File x", "-" * 300_000, "  -a\n" * 2000])
def test_a_program_without_help_has_no_flags(text: str) -> None:
    assert set(flags.known(text)) <= {"a"}


def test_defaults_that_are_paths_are_read_too() -> None:
    assert {flag: path for flag, path in (flags.known(_PFLAG) | flags.known(_FLAG)).items() if path} == {
        "credentials-file": "/etc/acme/credentials.yaml",
        "config": "/etc/acme.yaml",
    }


def test_our_settings_the_users_and_those_of_the_release_are_merged() -> None:
    args = ["--leader-elect", "--v=2", "--metrics-bind-addr=:8080", "--webhook-port", "9443", "--feature-gates=A=true"]
    values = {flags.WEBHOOK_PORT: "1234", flags.METRICS: "127.0.0.1:0", flags.HEALTH: "127.0.0.1:5"}

    made = flags.settled(args, ["--v=9", "positional"], flags.known(_PFLAG), values)

    assert made == ["--feature-gates=A=true", "--webhook-port=1234", "--metrics-bind-addr=127.0.0.1:0", "--v=9", "positional"]


def test_the_user_has_the_last_word_on_our_settings() -> None:
    assert flags.settled(["--leader-elect"], [], flags.known(_FLAG), {}) == ["--leader-elect=false"]
    made = flags.settled(["--leader-elect=true"], ["--webhook-port=99", "--leader-elect"], flags.known(_PFLAG), {flags.WEBHOOK_PORT: "1"})

    assert made == ["--webhook-port=99", "--leader-elect"]


def test_flags_that_may_be_repeated_are_added_to() -> None:
    assert flags.settled(["--key=a", "--key=b"], ["--key=c"], (), {}) == ["--key=a", "--key=b", "--key=c"]


def test_webhooks_point_to_loopback_and_trust_our_authority() -> None:
    before = hook()
    made = pointed(before, 4711, b"PEM")

    client = made["webhooks"][0]["clientConfig"]
    assert client == {"url": "https://127.0.0.1:4711/check", "caBundle": base64.b64encode(b"PEM").decode()}
    assert made["metadata"]["annotations"] == {"kept": "yes"}
    assert before == hook(), "the release is not changed"


@pytest.mark.parametrize("path", ["convert", "/convert"])
def test_conversion_webhooks_point_to_loopback(path: str) -> None:
    service = {"namespace": "x", "name": "y", "path": path}
    definition = crd({"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}})

    made = pointed(definition, 4711, b"PEM")

    assert made["spec"]["conversion"]["webhook"]["clientConfig"]["url"] == "https://127.0.0.1:4711/convert"


@pytest.mark.parametrize(
    "obj", [crd(), crd({"strategy": "None"}), {"kind": "ValidatingWebhookConfiguration", "metadata": {}, "webhooks": [None, {}]}]
)
def test_other_objects_stay_as_they_are(obj: Any) -> None:
    assert pointed(deepcopy(obj), 1, b"") == obj


def test_gaps_in_contract_labels_are_named() -> None:
    unlabelled, wrong, foreign = crd(), crd(labels={"cluster.x-k8s.io/v1beta2": "v1_v7"}), crd()
    unlabelled["metadata"]["labels"] = {}
    foreign["spec"]["group"] = "ipam.cluster.x-k8s.io"
    foreign["metadata"]["labels"] = {}

    assert contract_problems([crd()]) == []
    assert contract_problems([foreign]) == []
    assert contract_problems([unlabelled]) == [
        (
            "acmemachines.infrastructure.cluster.x-k8s.io has no label cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1: "
            "Clusters and Machines cannot refer to its objects"
        )
    ]
    assert contract_problems([wrong]) == [
        "acmemachines.infrastructure.cluster.x-k8s.io: the label cluster.x-k8s.io/v1beta2 names v7, which is not served"
    ]


def test_the_pause_between_restarts_doubles_and_is_bounded() -> None:
    pauses = [pause(n) for n in range(12)]

    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == LONGEST_PAUSE == pause(10_000)
