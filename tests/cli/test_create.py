"""`create cluster`, and the examples, which are what it prints."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cli.conftest import Run
from clusterwright.api.meta import Json
from clusterwright.api.yamlreader import load_all
from clusterwright.cli import demo
from clusterwright.cli.create import FLAVORS
from clusterwright.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_an_example_is_what_is_created(flavor: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", flavor, "--flavor", flavor, "--dry-run"]) == 0
    assert capsys.readouterr().out == (EXAMPLES / f"{flavor}.yaml").read_text()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_an_example_comes_up_and_goes(flavor: str, plane: Run) -> None:
    created = plane("create", "cluster", flavor, "--flavor", flavor, "--wait")

    assert (created.returncode, created.stderr) == (0, "")
    assert "control plane 1/1 ready  workers 1/1 ready  machines: 2 Running  " in created.stdout
    again = plane("create", flavor, "--flavor", flavor)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    deleted = plane("delete", flavor)
    assert deleted.returncode == 0
    assert "2 Machines (" in deleted.stdout.splitlines()[0]


def test_a_control_plane_of_two_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "c", "--control-plane-machines", "2"]) == 2
    assert "an odd number is expected" in capsys.readouterr().err


def containers(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, list[Json]]:
    """The objects, by kind, of a cluster of containers."""
    assert main(["create", "c", "--infrastructure", "docker", "--dry-run", *flags]) == 0
    by_kind: dict[str, list[Json]] = {}
    for obj in load_all(capsys.readouterr().out):
        by_kind.setdefault(obj["kind"], []).append(obj)
    return by_kind


@pytest.mark.parametrize("flavor", FLAVORS)
def test_every_flavor_can_be_made_of_containers(flavor: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = containers(capsys, "--flavor", flavor, "--node-image", "me/node:v1", "--load-balancer-image", "host:5000/lb")

    said = json.dumps(made)
    assert "inMemory" not in said
    assert said.count('"customImage": "me/node:v1"') == len(made["DevMachineTemplate"]) + len(made.get("DevMachinePoolTemplate", []))
    assert '"loadBalancer": {"imageRepository": "host:5000/lb"}' in said
    assert made["Cluster"][0]["spec"]["clusterNetwork"]["pods"]["cidrBlocks"] == ["10.244.0.0/16"]
    [command] = next(
        found["postKubeadmCommands"]
        for obj in (*made.get("KubeadmControlPlane", []), *made.get("KubeadmControlPlaneTemplate", []))
        for found in (obj["spec"].get("kubeadmConfigSpec") or obj["spec"]["template"]["spec"]["kubeadmConfigSpec"],)
    )
    assert "{{" not in command, "cloud-init would take it for a template"


@pytest.mark.parametrize("path", ["/run/kubeadm/kubeadm.yaml", "/tmp/kubeadm.yml"], ids=["cloud-config", "ignition"])
def test_the_cni_that_the_node_image_brings_is_applied_on_the_first_machine(
    path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [command] = containers(capsys)["KubeadmControlPlane"][0]["spec"]["kubeadmConfigSpec"]["postKubeadmCommands"]
    image, kubectl, init = tmp_path / "default-cni.yaml", tmp_path / "kubectl", tmp_path / "kubeadm.yaml"
    kubectl.write_text("#!/bin/sh\ncat\n")
    kubectl.chmod(0o755)
    command = command.replace("/kind/manifests/default-cni.yaml", str(image)).replace(path, str(init))

    def run() -> tuple[int, str, str]:
        done = subprocess.run(
            ["/bin/sh", "-c", command], capture_output=True, text=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False
        )
        return done.returncode, done.stdout, done.stderr

    for documents in ("", "---\nkind: JoinConfiguration\n"):
        init.write_text(documents)
        assert run() == (0, "", ""), "a machine that joins"
    init.write_text("---\nkind: ClusterConfiguration\n---\nkind: InitConfiguration\n")
    code, _, error = run()
    assert code == 1
    assert "brings no CNI" in error
    image.write_text("value: {{ .PodSubnet }}\nother: {{.PodSubnet}}\n")
    assert run() == (0, "value: 10.244.0.0/16\nother: 10.244.0.0/16\n", "")


def test_a_users_cni_is_applied_only_to_its_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "cni.yaml"
    file.write_text("kind: DaemonSet\n")
    made = containers(capsys, "--cni", str(file))

    assert made["ConfigMap"][0]["data"] == {"cni.yaml": "kind: DaemonSet\n"}
    selector = made["ClusterResourceSet"][0]["spec"]["clusterSelector"]["matchLabels"]
    assert made["Cluster"][0]["metadata"]["labels"] == selector == {"cni": "c"}
    assert "postKubeadmCommands" not in json.dumps(made)
    assert "postKubeadmCommands" not in json.dumps(containers(capsys, "--cni", "none"))


@pytest.mark.parametrize("flag", ["--cni", "--node-image", "--load-balancer-image"])
def test_flags_for_containers_are_refused_for_simulated_machines(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "c", flag, "x"]) == 2
    assert f"{flag}: only for containers" in capsys.readouterr().err


def test_with_an_engine_the_demo_has_few_real_machines() -> None:
    simulated, real = json.dumps(demo.manifests()), json.dumps(demo.manifests(are_real=True, version="v1.36.1"))

    assert "inMemory" in simulated
    assert "inMemory" not in real
    assert (simulated.count('"replicas": 3'), real.count('"replicas": 1'), real.count('"version": "v1.36.1"')) == (2, 2, 2)
