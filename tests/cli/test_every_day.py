"""Commands for every day as processes, beside one plane with one cluster."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
import yaml

from cli.conftest import Run, environment, run_in, running
from clusterwright.api.core import MachineDeployment
from clusterwright.api.meta import ObjectKey
from clusterwright.cli import connect
from clusterwright.cli.main import main
from clusterwright.runtime.kubeconfig import Kubeconfig
from support.forks import program
from support.terminals import openpty


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running(tmp_path_factory.mktemp("plane"), "--health-port", "0") as folder:
        yield folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """Commands beside a plane that has the cluster `c`, with a MachineHealthCheck."""
    run = run_in(folder)
    made = run("create", "c", "--flavor", "health-check", "--wait")
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    assert lines[0] == "cluster default/c created"
    assert lines[-1].startswith("cluster default/c is available after ")
    assert "control plane 1/1 ready  workers 1/1 ready  machines: 2 Running  " in lines[-2]
    assert "\x1b" not in made.stdout
    return run


def said(run: Run, *arguments: str) -> str:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def refused(run: Run, *arguments: str) -> tuple[int, str]:
    done = run(*arguments)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.returncode, done.stderr


def worker(run: Run) -> str:
    machines = json.loads(said(run, "get", "machines", "-o", "json"))["items"]
    name: str = next(m["metadata"]["name"] for m in machines if "cluster.x-k8s.io/control-plane" not in m["metadata"]["labels"])
    return name


def test_an_existing_cluster_is_not_created_again(run: Run) -> None:
    status, line = refused(run, "create", "c")
    assert status == 1
    assert line.startswith("clusterwright create: Cluster default/c already exists; nothing was created; choose another name, ")
    assert line.endswith(" delete c -n default\n")


def test_get_shows_clusters_and_their_parts(run: Run) -> None:
    assert said(run, "get", "clusters").splitlines()[1].startswith("c ")
    head, row = said(run, "get", "clusters").splitlines()
    assert row[head.index("VERDICT") :] == "Fine"
    head, row = said(run, "get", "clusters", "-o", "wide").splitlines()
    assert head.endswith("VERDICT")
    assert row[head.index("VERDICT") :].startswith("Fine: ")
    assert said(run, "get", "cl/c", "-o", "name") == "cluster.cluster.x-k8s.io/c\n"
    assert yaml.safe_load(said(run, "get", "kcp", "c", "-o", "yaml"))["kind"] == "KubeadmControlPlane"
    assert yaml.safe_load(said(run, "get", "kubeconfig", "c"))["kind"] == "Config"


def test_describe_and_explain_end_and_begin_with_the_same_verdict(run: Run) -> None:
    tree = said(run, "describe", "c")
    assert "MachineDeployment/c-md-0" in tree
    assert said(run, "explain", "c").splitlines()[0] == tree.rstrip().splitlines()[-1]


def test_a_tree_is_printed_for_programs(run: Run) -> None:
    shown = json.loads(said(run, "describe", "c", "-o", "json"))

    assert shown["verdict"]["state"] == "fine"
    assert shown["tree"]["condition"]["type"] == "Available"
    control_plane = next(branch for branch in shown["tree"]["children"] if branch["kind"] == "KubeadmControlPlane")
    assert control_plane["ready"] == "1/1"
    assert [machine["kind"] for machine in control_plane["children"]] == ["Machine"]
    assert refused(run, "describe", "c", "-o", "json", "--watch")[0] == 2


def test_waiting(run: Run) -> None:
    assert "condition=Available holds after" in said(run, "wait", "c")
    assert "jsonpath={.status.phase}=Provisioned holds after" in said(
        run, "wait", "cluster/c", "--for", "jsonpath={.status.phase}=Provisioned"
    )
    assert said(run, "wait", "machine/nope", "--for=delete") == "machine default/nope: does not exist\n"
    assert refused(run, "wait", "nope")[0] == 1
    assert refused(run, "wait", "c", "--for", "nope")[0] == 2
    status, line = refused(run, "wait", "c", "--for", "condition=Deleting", "--timeout", "0.5")
    assert status == 1
    assert "condition=Deleting does not hold after 0.5 s: Deleting=False" in line


def test_faults_are_injected_listed_and_removed(run: Run) -> None:
    name = worker(run)
    assert said(run, "fault", "list").startswith("nothing is broken\n")
    assert said(run, "fault", "inject", f"machine/{name}", "kubelet-stops").endswith("kubelet-stops injected; now: kubelet-stops\n")
    said(run, "wait", f"machine/{name}", "--for", "condition=NodeHealthy=Unknown")
    assert "; now: kubelet-stops,etcd-stops" in said(run, "fault", "inject", f"node/{name}", "etcd-stops")
    said(run, "fault", "inject", f"devmachine/{name}", "slow=2")
    assert said(run, "fault", "inject", "cluster/c", "api-server-unreachable").startswith("DevCluster/c: api-server-unreachable injected")
    listed = said(run, "fault", "list", "c").splitlines()
    assert listed[1].split() == ["DevCluster/c", "c", "api-server-unreachable"]
    said(run, "fault", "remove", "cluster/c")
    assert listed[2].split() == [f"DevMachine/{name}", "c", "kubelet-stops,etcd-stops,", "slow=2"]
    assert said(run, "fault", "remove", f"machine/{name}", "etcd-stops").endswith("; now: kubelet-stops\n")
    assert said(run, "fault", "remove", name).endswith("all faults removed\n")
    assert said(run, "fault", "remove", name).endswith("nothing to change\n")
    said(run, "wait", f"machine/{name}", "--for", "condition=NodeHealthy")
    said(run, "wait", "cluster/c", "--for", "condition=Available")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["inject", "machine/nope", "node-dies"], 1, "not found"),
        (["inject", "node/nope", "node-dies"], 1, "not found"),
        (["inject", "cluster/c", "node-dies"], 2, "known: api-server-unreachable"),
        (["inject", "cluster/c"], 2, "one FAULT"),
        (["inject", "kcp/c", "node-dies"], 2, "cannot be broken"),
        (["inject", "devcluster/c", "slow=x"], 2, "is not a number"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_objects_that_cannot_have_faults_are_reported(arguments: list[str], status: int, text: str, run: Run) -> None:
    ended, line = refused(run, "fault", *arguments)
    assert ended == status
    assert text in line


def test_the_timeline_shows_conditions_events_and_creations(run: Run, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(run, "timeline", "c").splitlines()
    assert [line[:20] for line in lines] == sorted(line[:20] for line in lines)
    assert any("  created    Cluster/c  was created" in line for line in lines)
    assert any("  condition  Cluster/c  Available became True" in line for line in lines)
    assert any("  event      " in line for line in lines)
    assert refused(run, "timeline", "nope")[0] == 1
    assert refused(run, "timeline", "c", "--health-port", "1")[0] == 1
    bundle = folder / "bundle.yaml"
    said(run, "record", "c", "-f", str(bundle))
    assert main(["timeline", "c", "--from", str(bundle), "-o", "json"]) == 0
    moments = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {m["sort"] for m in moments} >= {"created", "condition", "event"}
    for arguments, text in ((["nope", "--from", str(bundle)], "'nope' not found"), (["c", "--from", "nowhere"], "nowhere: No such file")):
        assert main(["timeline", *arguments]) == 1
        assert text in capsys.readouterr().err


def test_names_of_objects_are_completed(run: Run) -> None:
    name = worker(run)
    assert said(run, "complete", "--", "describe", "") == "cluster\nc\n"
    assert said(run, "complete", "--", "get", "machine", name[:-1]) == f"{name}\n"
    assert said(run, "complete", "--", "explain", "kubeadmcontrolplane/") == "kubeadmcontrolplane/c\n"
    assert said(run, "complete", "--", "explain", "c", "Av") == "Available\n"
    assert said(run, "complete", "--", "explain", "machine", "nope", "") == ""
    assert said(run, "complete", "--", "wait", "c", "--for", "co") == "condition=\n"


def test_render_prints_bootstrap_data_without_secrets(run: Run) -> None:
    text = said(run, "render", f"kubeadmconfig/{worker(run)}")
    assert text.startswith("## template: jinja")
    assert refused(run, "render", "kubeadmconfig/nope")[0] == 1


_FOREIGN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: capi-controller-manager, namespace: default, labels: {cluster.x-k8s.io/provider: cluster-api}}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: manager, image: x}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: capi-validating}
webhooks:
- name: validation.cluster.cluster.x-k8s.io
  clientConfig: {service: {name: capi-webhook-service, namespace: capi-system}}
  rules: [{apiGroups: [cluster.x-k8s.io], apiVersions: [v1beta2], operations: [CREATE], resources: [nothing]}]
  admissionReviewVersions: [v1]
  sideEffects: None
"""


def test_adopt_shows_planned_writes_and_other_controllers(run: Run, folder: Path) -> None:
    report = json.loads(said(run, "adopt", "--dry-run", "-o", "json"))
    assert report["inTheWay"] == []
    (cluster,) = report["clusters"]
    assert cluster["cluster"] == "default/c"
    assert cluster["passes"] >= 8
    assert [write for write in cluster["writes"] if write["matters"]] == []
    assert cluster["refused"] == []

    (folder / "foreign.yaml").write_text(_FOREIGN)
    kubectl = ["kubectl", "--kubeconfig", str(folder / ".clusterwright" / "kubeconfig")]
    if not which("kubectl"):
        pytest.skip("NO KUBECTL: managers and webhooks of others are not put in the way of a take-over")
    subprocess.run([*kubectl, "apply", "-f", str(folder / "foreign.yaml")], check=True, capture_output=True, env=environment(folder))
    try:
        told = run("adopt", "--dry-run")
        assert told.returncode == 3, told.stderr
        assert "in the way: Deployment/default/capi-controller-manager runs cluster-api with 1 replicas: kubectl -n default" in told.stdout
        assert "webhook validation.cluster.cluster.x-k8s.io asks Service capi-system/capi-webhook-service, policy Fail" in told.stdout
    finally:
        subprocess.run([*kubectl, "delete", "-f", str(folder / "foreign.yaml")], check=True, capture_output=True, env=environment(folder))


def test_adopt_changes_nothing_and_reports_that(run: Run) -> None:
    status, text = run("adopt").returncode, run("adopt").stderr
    assert status == 2
    assert "--dry-run is required" in text


def test_the_store_is_sound(run: Run) -> None:
    assert ": sound, " in said(run, "store", "check")
    assert run("store", "check", "--data-dir", "/nowhere").returncode == 1


def test_a_watch_of_a_cluster_shows_changes_until_it_is_gone(run: Run, folder: Path) -> None:
    said(run, "create", "w", "--worker-machines", "0", "--wait")
    watching = {}
    for command in ("describe", "timeline"):
        with (folder / command).open("w") as out:
            watching[command] = subprocess.Popen([*program(), command, "w", "--watch"], cwd=folder, env=environment(folder), stdout=out)
    deadline = time.monotonic() + 600  # a net, not a measurement
    while not all((folder / command).read_text() for command in watching):
        assert not any(process.poll() for process in watching.values())
        assert time.monotonic() < deadline
        time.sleep(0.1)
    said(run, "delete", "w")
    for command, process in watching.items():
        assert process.wait(timeout=600) == 0
        assert (folder / command).read_text().endswith("cluster default/w is gone\n")


def test_on_a_terminal_the_tree_changes_in_its_place(run: Run, folder: Path) -> None:
    near, far = openpty()
    process = subprocess.Popen(
        [*program(), "create", "t", "--wait"], cwd=folder, env=environment(folder, LINES="50"), stdout=far, stderr=far, close_fds=True
    )
    os.close(far)
    shown = b""
    while True:
        ready, _, _ = select.select([near], [], [], 600)
        assert ready
        try:
            chunk = os.read(near, 65536)
        except OSError:  # how Linux says that nobody is at the other end
            break
        if not chunk:
            break
        shown += chunk
    assert process.wait(timeout=60) == 0, shown
    text = shown.decode()
    assert "\x1b[" in text
    assert "KubeadmControlPlane/t" in text.rpartition("\x1b[J")[2]
    assert said(run, "delete", "t").splitlines()[-1].startswith("cluster default/t deleted after ")


def test_values_are_printed_by_path_and_in_columns(run: Run) -> None:
    assert said(run, "get", "clusters", "-o", "jsonpath={.items[*].metadata.name}") == "c\n"
    assert said(run, "get", "cluster", "c", "-o", "jsonpath={.status.phase}") == "Provisioned\n"
    columns = said(run, "get", "clusters", "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase,NONE:.spec.none")
    assert [line.split() for line in columns.splitlines()] == [["NAME", "PHASE", "NONE"], ["c", "Provisioned", "<none>"]]
    for wrong in ("jsonpath", "custom-columns=NAME", "jsonpath={.a[}", "xml"):
        status, text = refused(run, "get", "clusters", "-o", wrong)
        assert (status, "-o" in text) == (2, True)


def test_all_kinds_are_listed_at_once(run: Run) -> None:
    shown = said(run, "get", "all", "-o", "name").split()

    assert {name.partition(".")[0] for name in shown} == {
        "cluster",
        "kubeadmcontrolplane",
        "machinedeployment",
        "machineset",
        "machine",
        "machinehealthcheck",
    }


def test_get_goes_on_with_a_line_for_each_change(run: Run, folder: Path) -> None:
    assert refused(run, "get", "clusters", "-w", "-o", "json")[0] == 2
    with subprocess.Popen(
        [*program(), "get", "md", "-w"], cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as watching:
        try:
            assert watching.stdout is not None
            assert watching.stdout.readline().startswith("NAME")
            assert watching.stdout.readline().startswith("c-md-0")
            asyncio.run(_labelled(folder))
            assert watching.stdout.readline().startswith("c-md-0")
        finally:
            watching.kill()


async def _labelled(folder: Path) -> None:
    async with connect.connected(Kubeconfig.load([folder / ".clusterwright" / "kubeconfig"]).resolve()) as client:
        await client.patch(MachineDeployment, ObjectKey("default", "c-md-0"), {"metadata": {"labels": {"watched": "yes"}}})
