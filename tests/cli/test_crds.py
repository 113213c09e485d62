from __future__ import annotations

import json
import re

import pytest
import yaml

from clusterwright.api.crds import crds
from clusterwright.cli.main import main


def test_all_definitions_are_printed_as_yaml_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    output = capsys.readouterr().out
    assert list(yaml.safe_load_all(output)) == crds()
    assert "&id" not in output


def test_named_kinds_are_printed_once_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "-o", "json", "Cluster", "kcp", "machines.cluster.x-k8s.io", "Cluster"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["kind"] == "List"
    assert [item["metadata"]["name"] for item in printed["items"]] == [
        "clusters.cluster.x-k8s.io",
        "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
        "machines.cluster.x-k8s.io",
    ]


def test_an_unknown_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "Cluster", "Nope"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "clusterwright crds: no such kind: Nope\n"


def test_a_wrong_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "--nope"]) == 2
    assert capsys.readouterr().err == "clusterwright crds: unrecognized arguments: --nope; see --help\n"


def test_the_hooks_of_extensions_are_described_without_dangling_references(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "--runtime-hooks"]) == 0
    text = capsys.readouterr().out
    document = json.loads(text)

    assert "/hooks.runtime.cluster.x-k8s.io/v1alpha1/updatemachine/{name}" in document["paths"]
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= set(document["components"]["schemas"])
