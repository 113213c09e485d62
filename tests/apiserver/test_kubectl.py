"""kubectl, the real one, drives a real server over TLS."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.apiserver_testing import widget_crds
from clusterwright.simulation import samples

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on the PATH: nothing here was tried with it")

PROGRAM = textwrap.dedent("""
    import asyncio, random, sys
    from datetime import UTC, datetime
    from pathlib import Path
    from clusterwright.api.crds import crds
    from clusterwright.apiserver.serving.serve import ServeOptions, serve

    sys.exit(asyncio.run(serve(ServeOptions(
        listen="127.0.0.1:0", kubeconfig=Path(sys.argv[1]), crds=tuple(crds()), now=lambda: datetime.now(UTC), random=random.SystemRandom()))))
""")

WIDGET = {
    "apiVersion": "widgets.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"color": "red", "size": 1, "replicas": 2},
}


class Kubectl:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespaces = [f"t{n}" for n in range(60)]
        self.environment = {**os.environ, "KUBECONFIG": str(folder / "config"), "HOME": str(folder), "KUBECTL_EXTERNAL_DIFF": "diff -u -N"}

    def run(self, *arguments: str, stdin: Any = None, code: int | None = 0, **environment: str) -> str:
        assert KUBECTL is not None
        text = None if stdin is None else "\n".join(json.dumps(d) for d in (stdin if isinstance(stdin, list) else [stdin]))
        done = subprocess.run(
            [KUBECTL, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=600,
            env={**self.environment, **environment},
            check=False,
        )
        assert code is None or done.returncode == code, f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        assert KUBECTL is not None
        return subprocess.Popen([KUBECTL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("kubectl")
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder / "config")], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        driver = Kubectl(folder)
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in driver.namespaces]
        driver.run("create", "-f", "-", stdin=[*widget_crds(), *spaces])
        yield driver
    finally:
        process.terminate()
        process.communicate(timeout=600)


@pytest.fixture
def namespace(kubectl: Kubectl) -> str:
    return kubectl.namespaces.pop()


def test_apply_creates_changes_and_then_leaves_alone(kubectl: Kubectl, namespace: str):
    first = kubectl.run("apply", "-n", namespace, "-f", "-", stdin=WIDGET)
    same = kubectl.run("apply", "-n", namespace, "-f", "-", stdin=WIDGET)
    changed = kubectl.run("apply", "-n", namespace, "-f", "-", stdin={**WIDGET, "spec": {"color": "blue"}})
    now = json.loads(kubectl.run("get", "-n", namespace, "widget", "w", "-o", "json"))

    assert "widget.widgets.example.com/w created" in first
    assert "widget.widgets.example.com/w unchanged" in same
    assert "widget.widgets.example.com/w configured" in changed
    assert now["spec"] == {"color": "blue", "replicas": 1}  # what was no longer applied is gone, the default is back


def test_apply_of_a_built_in_merges_strategically(kubectl: Kubectl, namespace: str):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]},
    }
    kubectl.run("apply", "-n", namespace, "-f", "-", stdin=service)
    service["spec"]["ports"] = [{"name": "https", "port": 8443}]  # type: ignore[index]
    kubectl.run("apply", "-n", namespace, "-f", "-", stdin=service)

    ports = json.loads(kubectl.run("get", "-n", namespace, "service", "s", "-o", "json"))["spec"]["ports"]
    assert [(p["name"], p["port"]) for p in ports] == [("https", 8443)]


def test_a_list_printed_by_get_can_be_applied(kubectl: Kubectl, namespace: str):
    for name in ("one", "two"):
        kubectl.run("create", "configmap", name, "-n", namespace, "--from-literal=k=v")

    listed = json.loads(kubectl.run("get", "configmaps", "one", "two", "-n", namespace, "-o", "json"))
    for item in listed["items"]:
        item["data"]["k"] = "w"
    applied = kubectl.run("apply", "-f", "-", stdin=listed)

    assert applied.count(" configured") == 2
    assert kubectl.run("get", "configmap", "two", "-n", namespace, "-o", "jsonpath={.data.k}") == "w"


def test_server_side_apply_reports_conflicts(kubectl: Kubectl, namespace: str):
    kubectl.run("apply", "-n", namespace, "--server-side", "--field-manager=one", "-f", "-", stdin=WIDGET)
    other = {**WIDGET, "spec": {"color": "green"}}

    refused = kubectl.run("apply", "-n", namespace, "--server-side", "--field-manager=two", "-f", "-", stdin=other, code=1)
    forced = kubectl.run("apply", "-n", namespace, "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=other)

    assert 'conflict with "one": .spec.color' in refused
    assert "serverside-applied" in forced


def test_unknown_fields_are_refused_by_name(kubectl: Kubectl, namespace: str):
    text = kubectl.run("apply", "-n", namespace, "-f", "-", stdin={**WIDGET, "spec": {"color": "red", "colour": "x"}}, code=1)

    assert 'unknown field "spec.colour"' in text


def test_get_shows_the_columns(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    table = kubectl.run("get", "-n", namespace, "widgets")
    wide = kubectl.run("get", "-n", namespace, "wd", "-o", "wide")
    names = kubectl.run("get", "-n", namespace, "widgets", "-o", "name")

    assert table.splitlines()[0].split()[0] == "NAME"
    assert table.splitlines()[1].split()[0] == "w"
    assert len(wide.splitlines()) == 2
    assert names == "widget.widgets.example.com/w\n"


def test_get_w_follows_changes(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    watch = kubectl.start("get", "-n", namespace, "widgets", "-w", "--output-watch-events")
    try:
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[:2] == ["EVENT", "NAME"]
        seen = [watch.stdout.readline().strip()]
        kubectl.run("label", "-n", namespace, "widget", "w", "a=b")
        seen.append(watch.stdout.readline().strip())
        kubectl.run("delete", "-n", namespace, "widget", "w")
        seen.append(watch.stdout.readline().strip())
    finally:
        watch.kill()
        watch.communicate()

    assert [s.split()[0] for s in seen] == ["ADDED", "MODIFIED", "DELETED"]


def test_describe_shows_the_object_and_its_events(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    made = json.loads(kubectl.run("get", "-n", namespace, "widget", "w", "-o", "json"))
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "w.1", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "widgets.example.com/v1",
            "kind": "Widget",
            "name": "w",
            "namespace": namespace,
            "uid": made["metadata"]["uid"],
        },
        "reason": "Painted",
        "message": "it is red now",
        "type": "Normal",
    }
    kubectl.run("create", "-f", "-", stdin=event)

    text = kubectl.run("describe", "-n", namespace, "widget", "w")

    assert re.search(r"Color:\s+red", text)
    assert re.search(r"Painted.*it is red now", text)


def test_explain_reads_the_schema(kubectl: Kubectl):
    widget = kubectl.run("explain", "widget.spec.color")
    secret = kubectl.run("explain", "secret.data")
    cluster = kubectl.run("explain", "cluster.spec")

    assert "FIELD: color <string>" in widget
    assert "FIELD: data <map[string]string>" in secret
    assert "controlPlaneRef" in cluster


def test_diff_shows_what_apply_would_change(kubectl: Kubectl, namespace: str):
    kubectl.run("apply", "-n", namespace, "-f", "-", stdin=WIDGET)

    same = kubectl.run("diff", "-n", namespace, "-f", "-", stdin=WIDGET)
    text = kubectl.run("diff", "-n", namespace, "-f", "-", stdin={**WIDGET, "spec": {"color": "blue"}}, code=1)

    assert same == ""
    assert "-  color: red" in text
    assert "+  color: blue" in text


def test_patch_label_annotate_and_edit(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    kubectl.run("patch", "-n", namespace, "widget", "w", "--type=merge", "-p", '{"spec":{"size":7}}')
    kubectl.run("patch", "-n", namespace, "widget", "w", "--type=json", "-p", '[{"op":"add","path":"/spec/title","value":"t"}]')
    kubectl.run("patch", "-n", namespace, "widget", "w", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    kubectl.run("label", "-n", namespace, "widget", "w", "tier=web")
    kubectl.run("annotate", "-n", namespace, "widget", "w", "note=hello")
    kubectl.run("edit", "-n", namespace, "widget", "w", KUBE_EDITOR="sed -i s/size:.7/size:\\ 8/")
    strategic = kubectl.run("patch", "-n", namespace, "widget", "w", "--type=strategic", "-p", "{}", code=1)

    now = json.loads(kubectl.run("get", "-n", namespace, "widget", "w", "-o", "json"))
    assert (now["spec"]["size"], now["spec"]["title"], now["status"]["phase"]) == (8, "t", "Up")
    assert now["metadata"]["labels"] == {"tier": "web"}
    assert now["metadata"]["annotations"] == {"note": "hello"}
    assert "unknown format" in strategic


def test_scale_and_wait(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    kubectl.run("scale", "-n", namespace, "widget", "w", "--replicas=5")
    waiting = kubectl.start("wait", "-n", namespace, "widget/w", "--for=condition=Ready", "--timeout=600s")
    condition = {"type": "Ready", "status": "True"}
    kubectl.run(
        "patch",
        "-n",
        namespace,
        "widget",
        "w",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": {"conditions": [condition]}}),
    )
    output, _ = waiting.communicate(timeout=600)

    assert "condition met" in output
    assert kubectl.run("get", "-n", namespace, "widget", "w", "-o", "jsonpath={.spec.replicas}") == "5"
    kubectl.run("wait", "-n", namespace, "widget/w", "--for=jsonpath={.spec.replicas}=5", "--timeout=600s")


def scalable() -> list[dict[str, Any]]:
    """One of each of our kinds that can be scaled."""
    made = [
        *samples.control_plane("c", replicas=1),
        *samples.workers("c", "md", replicas=1),
        *samples.workers("c", "ms", kind="MachineSet", replicas=1),
        *samples.machine_pool("c", "mp", replicas=1),
    ]
    kinds = {"KubeadmControlPlane", "MachineDeployment", "MachineSet", "MachinePool"}
    return [{**o, "metadata": {k: v for k, v in o["metadata"].items() if k != "namespace"}} for o in made if o["kind"] in kinds]


@pytest.mark.parametrize("name", ["kcp/c", "machinedeployment/md", "machineset/ms", "machinepool/mp"])
def test_our_kinds_are_scaled(kubectl: Kubectl, namespace: str, name: str):
    kubectl.run("apply", "-n", namespace, "-f", "-", stdin=scalable())
    said = kubectl.run("scale", "-n", namespace, name, "--replicas=3")
    wrong = kubectl.run("scale", "-n", namespace, name, "--current-replicas=7", "--replicas=9", code=1)
    scale = json.loads(kubectl.run("get", "-n", namespace, name, "--subresource=scale", "-o", "json"))

    assert "scaled" in said
    assert "Expected replicas to be 7, was 3" in wrong
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 3)
    assert json.loads(kubectl.run("get", "-n", namespace, name, "-o", "json"))["spec"]["replicas"] == 3


def test_delete_waits_for_finalizers(kubectl: Kubectl, namespace: str):
    held = {**WIDGET, "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=held)
    deleting = kubectl.start("delete", "-n", namespace, "widget", "held", "--timeout=600s")
    kubectl.run("wait", "-n", namespace, "widget/held", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=600s")
    assert deleting.poll() is None
    kubectl.run("patch", "-n", namespace, "widget", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    output, _ = deleting.communicate(timeout=600)

    assert deleting.returncode == 0, output


@pytest.mark.parametrize("policy", ["background", "foreground", "orphan"])
def test_delete_with_each_propagation(kubectl: Kubectl, namespace: str, policy: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    owner = json.loads(kubectl.run("get", "-n", namespace, "widget", "w", "-o", "json"))["metadata"]["uid"]
    reference = {"apiVersion": "widgets.example.com/v1", "kind": "Widget", "name": "w", "uid": owner}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [reference]}}
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=child)

    kubectl.run("delete", "-n", namespace, "widget", "w", f"--cascade={policy}", "--timeout=600s")

    assert ("child" in kubectl.run("get", "-n", namespace, "configmaps", "-o", "name")) is (policy == "orphan")


def test_create_sends_protobuf_and_it_is_understood(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "namespace", "made-by-kubectl")
    kubectl.run("create", "-n", namespace, "secret", "generic", "s", "--from-literal=k=v")
    kubectl.run("create", "-n", namespace, "configmap", "m", "--from-literal=a=b")
    kubectl.run("create", "-n", namespace, "serviceaccount", "robot")
    kubectl.run("create", "-n", namespace, "role", "r", "--verb=get", "--resource=configmaps")
    kubectl.run("create", "-n", namespace, "rolebinding", "rb", "--role=r", f"--serviceaccount={namespace}:robot")

    assert kubectl.run("get", "-n", namespace, "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    assert kubectl.run("get", "-n", namespace, "cm", "m", "-o", "jsonpath={.data.a}") == "b"
    token = kubectl.run("create", "-n", namespace, "token", "robot").strip()
    assert token.count(".") == 2
    assert "b" in kubectl.run("get", "-n", namespace, "cm", "m", "-o", "jsonpath={.data.a}", f"--token={token}")


def test_auth_can_i(kubectl: Kubectl, namespace: str):
    assert kubectl.run("auth", "can-i", "create", "clusters.cluster.x-k8s.io", "-n", namespace).strip() == "yes"
    assert kubectl.run("auth", "can-i", "get", "secrets", "-n", namespace, "--as=eve", code=1).strip() == "no"
    assert "kubernetes-admin" in kubectl.run("auth", "whoami")
    assert "*.*" in kubectl.run("auth", "can-i", "--list", "-n", namespace)


def test_api_resources_and_categories(kubectl: Kubectl, namespace: str):
    resources = kubectl.run("api-resources")
    versions = kubectl.run("api-versions")
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c1"},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c1"}},
    }
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=cluster)
    listed = kubectl.run("get", "-n", namespace, "cluster-api")

    assert re.search(r"^clusters\s+cl\s+cluster.x-k8s.io/v1beta2\s+true\s+Cluster$", resources, re.MULTILINE)
    assert "widgets.example.com/v1" in versions
    assert "cluster.cluster.x-k8s.io/c1" in listed


def test_lists_are_followed_through_their_pages(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=[{**WIDGET, "metadata": {"name": f"w{n}"}} for n in range(7)])

    assert len(kubectl.run("get", "-n", namespace, "widgets", "--chunk-size=2", "-o", "name").splitlines()) == 7


def test_watch_lists_of_newer_clients_are_served(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "-n", namespace, "-f", "-", stdin=WIDGET)
    text = kubectl.run(
        "wait", "-n", namespace, "widget/w", "--for=jsonpath={.spec.color}=red", "--timeout=600s", KUBE_FEATURE_WatchListClient="true"
    )

    assert "condition met" in text


def test_prune_deletes_objects_that_are_no_longer_applied(kubectl: Kubectl, namespace: str):
    def config_map(name: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"pruned": namespace}}}

    prune = ("apply", "-n", namespace, "--prune", "-l", f"pruned={namespace}", "-f", "-")
    kubectl.run(*prune, stdin=config_map("a"))

    assert "configmap/a pruned" in kubectl.run(*prune, stdin=config_map("b"))
    assert kubectl.run("get", "configmaps", "-n", namespace, "-l", "pruned", "-o", "name").split() == ["configmap/b"]


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        (["create", "job", "j", "--image=i"], "job.batch/j created"),
        (["create", "cronjob", "c", "--image=i", "--schedule=* * * * *"], "cronjob.batch/c created"),
        (["create", "ingress", "i", "--rule=example.com/*=s:80"], "ingress.networking.k8s.io/i created"),
        (["create", "quota", "q"], "resourcequota/q created"),
        (["autoscale", "deployment", "d", "--min=1", "--max=3"], "horizontalpodautoscaler.autoscaling/d autoscaled"),
    ],
    ids=lambda v: " ".join(v[:2]) if isinstance(v, list) else "",
)
def test_kinds_that_nothing_here_acts_on_are_kept(arguments: list[str], made: str, kubectl: Kubectl, namespace: str):
    if arguments[0] == "autoscale":
        kubectl.run("create", "deployment", "d", "--image=i", "-n", namespace)

    assert made in kubectl.run(*arguments, "-n", namespace)


def test_a_dump_of_everything(kubectl: Kubectl, namespace: str):
    kubectl.run("create", "deployment", "d", "--image=i", "-n", namespace)

    assert f'"namespace": "{namespace}"' in kubectl.run("cluster-info", "dump", "--namespaces", namespace, "-o", "json")
