"""`clusterwright conformance` as a process beside a plane: what it judges, what it prints, what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from cli.conftest import Run, run_in, running
from cli.test_examples import apply
from clusterwright.api.meta import Json
from kit.definitions import definitions

TEMPLATE = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: %s
metadata: {name: any}
spec: {template: {spec: %s}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: what-the-template-needs}
data: {}
"""
FLAG = "--infrastructure-machine-template"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running(tmp_path_factory.mktemp("plane"), "--audit-log", "audit.log") as folder:
        (folder / "machine.yaml").write_text(TEMPLATE % ("DevMachineTemplate", "{backend: {inMemory: {}}}"))
        (folder / "unknown.yaml").write_text(TEMPLATE % ("NobodysMachineTemplate", "{}"))
        (folder / "broken.yaml").write_text((TEMPLATE % ("GoodMachineTemplate", "{}")).replace("v1beta2", "v1", 1))
        (folder / "empty.yaml").write_text("---\n")
        yield folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_in(folder)


def rules(report: Json) -> dict[str, str]:
    (kind,) = report["kinds"]
    return {rule["id"]: rule["status"] for rule in kind["rules"]}


def test_it_judges_a_provider_and_removes_what_it_made(run: Run) -> None:
    options = ("--settle", "0.5s", "--timeout", "5m", "--audit-log", "audit.log", "-o", "json")
    done = run("conformance", FLAG, "machine.yaml", *options)
    assert done.returncode in {0, 3}, done.stderr  # on a busy machine, half a second is not enough for everything
    report = json.loads(done.stdout)
    assert report["conforms"] is (done.returncode == 0)
    found = rules(report)
    assert len(found) == 28
    assert {found[name] for name in ("IM-1", "IM-4", "IM-5", "IM-8", "IM-12", "IM-14", "PB-3", "PB-4", "PB-9", "PB-11")} == {"passed"}
    assert found["PB-7"] == "not seen"
    for kind in ("machines", "clusters", "devmachines", "devclusters", "devmachinetemplates", "validatingadmissionpolicies"):
        assert "No " in run("get", kind).stderr
    assert "what-the-template-needs" not in run("get", "configmaps").stdout


def test_definitions_are_judged_alone(run: Run) -> None:
    done = run("conformance", FLAG, "machine.yaml", "--definitions-only")
    assert done.returncode == 0, done.stdout
    assert "DevMachine.infrastructure.cluster.x-k8s.io as InfraMachine, contract v1beta2" in done.stdout
    assert "only definitions were judged" in done.stdout


def test_a_broken_rule_is_named_with_what_to_do(run: Run, folder: Path) -> None:
    kind, template = definitions("InfraMachine")
    del kind["spec"]["versions"][0]["subresources"]
    apply(folder, yaml.safe_dump_all([kind, template]))

    done = run("conformance", FLAG, "broken.yaml", "--definitions-only")
    assert done.returncode == 3
    assert (
        "  FAILED  IM-4   resource definition\n                 version v1 has no status subresource\n                 do: name it"
        in done.stdout
    )

    done = run("conformance", FLAG, "broken.yaml", "--definitions-only", "-o", "junit")
    suite = ElementTree.fromstring(done.stdout)[0]
    assert (done.returncode, suite.get("failures")) == (3, "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["IM-4 resource definition"]


def test_what_cannot_be_judged_is_said(run: Run) -> None:
    done = run("conformance", FLAG, "unknown.yaml")
    assert done.returncode == 1
    assert "no CustomResourceDefinition of kind NobodysMachine in group infrastructure.cluster.x-k8s.io" in done.stderr
    done = run("conformance", FLAG, "empty.yaml")
    assert (done.returncode, "a template is expected, the file is empty" in done.stderr) == (1, True)
