"""What a ClusterClass renders, with sample variables and without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.api.yamlreader import load_all
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli.main import main
from clusterwright.plan.samples import sample_of
from clusterwright.simulation import samples


def _folder(tmp_path: Path) -> str:
    """Write a class on infrastructure of others, with a patch and a variable that must be set."""
    variable = {"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "string", "enum": ["large", "small"]}}}
    matched = {"machineDeploymentClass": {"names": ["default-worker"]}}
    selector = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "matchResources": matched}
    operation = {"op": "add", "path": "/spec/template/spec/preKubeadmCommands", "valueFrom": {"template": "- echo {{ .size }}"}}
    patch = {"name": "size", "definitions": [{"selector": selector, "jsonPatches": [operation]}]}
    made = samples.cluster_class(variables=[variable], patches=[patch])
    made[-1]["spec"]["workers"].pop("machinePools")
    text = dump_all(made).replace("infrastructure.cluster.x-k8s.io/v1beta2", "infrastructure.example.com/v1").replace("Dev", "Example")
    (tmp_path / "class.yaml").write_text(text)
    return str(tmp_path)


def test_a_class_renders_with_made_up_and_given_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--class", _folder(tmp_path), "--set", "size=small"]) == 0
    shown = capsys.readouterr()
    objects = {o["kind"]: o for o in load_all(shown.out)}
    assert set(objects) == {
        "Cluster",
        "ExampleCluster",
        "ExampleMachineTemplate",
        "KubeadmConfigTemplate",
        "KubeadmControlPlane",
        "MachineDeployment",
    }
    assert objects["KubeadmConfigTemplate"]["spec"]["template"]["spec"]["preKubeadmCommands"] == ["echo small"]
    assert "made up" not in shown.err


def test_a_value_that_the_schema_forbids_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--class", _folder(tmp_path), "--set", "size=huge"]) == 1
    assert 'supported values: "large", "small"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "enum": ["a"]}, "a"),
        ({"type": "string", "minLength": 8}, "samplexx"),
        ({"type": "string", "maxLength": 3}, "sam"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}, "b": {"type": "string"}}}, {"a": True}),
        ({"type": "array", "minItems": 2, "items": {"type": "string", "example": "x"}}, ["x", "x"]),
        ({"type": "array"}, []),
        ({"type": "string", "default": "d", "enum": ["e"]}, "d"),
    ],
)
def test_a_sample_value_fits_its_schema(schema: dict[str, object], value: object):
    assert sample_of(schema) == value
