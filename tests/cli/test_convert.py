"""`clusterwright convert`: files in another version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterwright.cli.main import main

OLD = """\
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: md, namespace: team}
spec:
  clusterName: c
  replicas: 2
  selector: {}
  template:
    spec:
      clusterName: c
      version: v1.34.1
      nodeDrainTimeout: 90s
      bootstrap:
        configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: b}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DevMachineTemplate, name: i}
"""


def written(folder: Path, text: str, *flags: str) -> list[Any]:
    (folder / "in.yaml").write_text(text)
    assert main(["convert", str(folder / "in.yaml"), "-o", str(folder / "out.yaml"), *flags]) == 0
    return list(yaml.safe_load_all((folder / "out.yaml").read_text()))


def test_objects_are_converted_and_other_documents_stay(tmp_path: Path) -> None:
    namespace, deployment = written(tmp_path, OLD)

    assert namespace == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    assert deployment["apiVersion"] == "cluster.x-k8s.io/v1beta2"
    template = deployment["spec"]["template"]["spec"]
    assert template["deletion"] == {"nodeDrainTimeoutSeconds": 90}
    assert template["infrastructureRef"] == {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "i"}


def test_what_was_converted_converts_back(tmp_path: Path) -> None:
    written(tmp_path, OLD)
    back = written(tmp_path, (tmp_path / "out.yaml").read_text(), "--to-version", "v1beta1")[1]

    assert back["apiVersion"] == "cluster.x-k8s.io/v1beta1"
    assert back["spec"]["template"]["spec"]["nodeDrainTimeout"] == "1m30s"
    reference = back["spec"]["template"]["spec"]["infrastructureRef"]
    assert (reference["apiVersion"], reference["name"]) == ("infrastructure.cluster.x-k8s.io/v1beta2", "i")


def test_items_of_lists_are_converted(tmp_path: Path) -> None:
    items = list(yaml.safe_load_all(OLD))
    both = [
        {"apiVersion": "v1", "kind": "List", "items": items},
        {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeploymentList", "items": items[1:]},
    ]

    plain, typed = written(tmp_path, yaml.safe_dump_all(both))

    assert [i["apiVersion"] for i in plain["items"]] == ["v1", "cluster.x-k8s.io/v1beta2"]
    assert plain["apiVersion"] == "v1"
    assert typed["apiVersion"] == typed["items"][0]["apiVersion"] == "cluster.x-k8s.io/v1beta2"


def test_what_is_in_the_version_already_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.yaml").write_text("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c}\nspec: {unknown: [1]}\n")

    assert main(["convert", str(tmp_path / "in.yaml")]) == 0

    assert yaml.safe_load(capsys.readouterr().out)["spec"] == {"unknown": [1]}


def test_a_reference_to_a_kind_without_definition_is_an_error_that_names_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, OLD.replace("DevMachineTemplate", "AcmeMachineTemplate"))
    text = (tmp_path / "out.yaml").read_text()
    (tmp_path / "in.yaml").write_text(text)

    assert main(["convert", str(tmp_path / "in.yaml"), "--to-version", "v1beta1"]) == 1

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("clusterwright convert: document 2: ")
    assert "acmemachinetemplates.infrastructure.cluster.x-k8s.io" in told.err

    labels = {"cluster.x-k8s.io/v1beta2": "v1"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "acmemachinetemplates.infrastructure.cluster.x-k8s.io", "labels": labels},
    }
    found = written(tmp_path, text + "---\n" + yaml.safe_dump(crd), "--to-version", "v1beta1")
    assert found[1]["spec"]["template"]["spec"]["infrastructureRef"]["apiVersion"] == "infrastructure.cluster.x-k8s.io/v1"


def test_patches_of_a_class_are_left_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = {
        "name": "p",
        "definitions": [
            {
                "selector": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "DevClusterTemplate",
                    "matchResources": {"infrastructureCluster": True},
                },
                "jsonPatches": [],
            }
        ],
    }
    old = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass", "metadata": {"name": "cc"}, "spec": {"patches": [patch]}}

    (found,) = written(tmp_path, yaml.safe_dump(old))

    assert found["spec"]["patches"][0]["definitions"][0]["selector"]["apiVersion"].endswith("/v1beta1")
    assert "the patches of ClusterClass cc are as they were" in capsys.readouterr().err


def test_a_file_that_is_not_yaml_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.yaml").write_text("a: [")

    assert main(["convert", str(tmp_path / "in.yaml")]) == 1

    assert "it is not valid YAML" in capsys.readouterr().err
