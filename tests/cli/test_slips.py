"""What people get wrong at first, and the line that helps them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Run, run_in, running
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.cli import connect, grammar
from clusterwright.cli.main import main
from clusterwright.runtime.kubeconfig import Kubeconfig


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which a plane runs."""
    with running(tmp_path_factory.mktemp("plane")) as path:
        yield path


@pytest.fixture(scope="module")
def plane(folder: Path) -> Run:
    """Commands in that folder."""
    return run_in(folder)


def line(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """The exit status and the one line of the answer."""
    assert done.stdout == ""
    [said] = done.stderr.splitlines()
    return done.returncode, said


def objects(plane: Run, name: str) -> str:
    """The objects of any kind that a cluster consists of."""
    kinds = "clusters,devclusters,kubeadmcontrolplanes,machinedeployments,devmachinetemplates,kubeadmconfigtemplates"
    return "\n".join(found for found in plane("get", kinds, "-o", "name").stdout.splitlines() if found.partition("/")[2].startswith(name))


def test_a_refused_cluster_leaves_nothing_behind(plane: Run) -> None:
    # 63 characters are too long for the name of a cluster, not for that of an object
    name = "half" + "x" * 60
    status, said = line(plane("create", name))

    assert status == 1
    assert said.endswith("; nothing was created")
    assert objects(plane, "half") == ""


def test_a_taken_name_is_reported_before_any_write(plane: Run) -> None:
    plane("create", "taken", "--flavor", "plain")
    before = objects(plane, "taken")
    status, said = line(plane("create", "taken", "--flavor", "health-check"))

    assert status == 1
    assert "Cluster default/taken already exists; nothing was created" in said
    assert "delete taken -n default" in said
    assert objects(plane, "taken") == before
    assert plane("get", "mhc").stdout == ""


@pytest.mark.parametrize("version", ["1.34", "v1.34", "1.34.1", "latest"])
def test_a_version_that_is_not_whole_is_refused_with_an_example(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "c", "--kubernetes-version", version]) == 2
    assert (
        capsys.readouterr().err
        == f"clusterwright create: --kubernetes-version {version}: a full version is expected, for example v1.34.1\n"
    )


def test_an_object_of_another_namespace_is_found(plane: Run) -> None:
    plane("create", "away", "-n", "default")
    for command in ("describe", "delete", "wait"):
        assert line(plane(command, "away", "-n", "kube-system")) == (
            1,
            f'clusterwright {command}: clusters.cluster.x-k8s.io "away" not found; it is in namespace default; add -n default',
        )


def test_a_question_that_finds_nothing_is_answered_with_what_may_be_wrong(plane: Run) -> None:
    missing = "No clusters found in namespace nope. Namespace nope does not exist; -A lists all namespaces."
    assert line(plane("get", "clusters", "-n", "nope")) == (0, missing)
    assert line(plane("get", "clusters", "-n", "kube-public"))[1] == "No clusters found in namespace kube-public."
    assert line(plane("get", "nodes"))[1].endswith("get kubeconfig CLUSTER")


def test_a_misspelt_condition_is_answered_with_those_that_are_close(plane: Run) -> None:
    plane("create", "near", "--wait")

    assert line(plane("explain", "near", "Avalable"))[1].endswith("has no condition Avalable; did you mean Available?")
    waited = line(plane("wait", "near", "--for", "condition=Avalable", "--timeout", "0.1"))[1]
    assert waited.endswith("Avalable is missing; did you mean Available?")


def test_a_misspelt_name_is_answered_with_those_that_are_close(plane: Run) -> None:
    plane("create", "storefront")

    assert line(plane("describe", "storefrnt"))[1].endswith('"storefrnt" not found; did you mean storefront?')
    assert line(plane("get", "machinedeploymnt"))[1].endswith("did you mean machinedeployment or machinedeployments?")
    assert line(plane("get", "kubeconfig", "nope")) == (1, 'clusterwright get: clusters.cluster.x-k8s.io "nope" not found')


def test_a_misspelt_command_is_answered_with_those_that_are_close(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exlpain", "c"]) == 2
    assert capsys.readouterr().err == "clusterwright: unknown command 'exlpain'; did you mean explain?\n"
    assert main(["frobnicate"]) == 2
    assert capsys.readouterr().err == "clusterwright: unknown command 'frobnicate'; see --help\n"


def test_a_fault_of_machines_on_a_cluster_is_answered_with_its_machines(plane: Run) -> None:
    plane("create", "broken", "--wait")
    status, said = line(plane("fault", "inject", "broken", "node-dies"))

    assert status == 1
    assert "broken is a Cluster: name one of its Machines (machine/broken-" in said
    assert "node-dies" in plane("fault", "inject", "--help").stdout


async def test_the_deletion_of_a_paused_cluster_says_that_it_waits(plane: Run, folder: Path) -> None:
    plane("create", "held")
    async with connect.connected(Kubeconfig.load([folder / ".clusterwright" / "kubeconfig"]).resolve()) as client:
        await client.patch(Cluster, ObjectKey("default", "held"), {"spec": {"paused": True}})
    deleted = plane("delete", "held", "--timeout", "1s")

    assert deleted.returncode == 1
    assert "cluster default/held is paused: it will not be deleted until spec.paused is removed" in deleted.stdout


@pytest.mark.parametrize(("text", "seconds"), [("5", 5.0), ("0.5", 0.5), ("5s", 5.0), ("1m30s", 90.0), ("1h", 3600.0)])
def test_waits_are_written_as_kubectl_writes_them(text: str, seconds: float) -> None:
    assert grammar.parse("wait", ["c", "--timeout", text]).timeout == seconds


@pytest.mark.parametrize("text", ["5x", "-5s", "nan", "inf", ""])
def test_a_wait_that_is_not_a_duration_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wait", "c", f"--timeout={text}"]) == 2
    assert f"{text!r} is not a duration; write it as 90s, 15m or 1h30m" in capsys.readouterr().err


def test_several_kinds_are_shown_one_after_the_other(plane: Run) -> None:
    plane("create", "several", "--wait")
    shown = plane("get", "clusters,machinedeployments", "-c", "several")

    assert [row.split()[0] for row in shown.stdout.splitlines()] == ["NAME", "several-md-0"]
    both = plane("get", "kcp,md", "-o", "name").stdout.split()
    assert {"kubeadmcontrolplane.controlplane.cluster.x-k8s.io/several", "machinedeployment.cluster.x-k8s.io/several-md-0"} <= set(both)
    assert plane("get", "kcp,md", "several").returncode == 2


def test_commands_of_similar_programs_name_what_does_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for word, wanted in (("scale", "kubectl scale"), ("logs", "timeline"), ("top", "describe"), ("upgrade", "spec")):
        assert main([word, "shop"]) == 2
        assert wanted in capsys.readouterr().err
    assert not {"scale", "logs", "top"} & set(grammar.COMMANDS)


def test_a_kind_that_is_nearly_right_is_suggested(plane: Run) -> None:
    status, said = line(plane("explain", "clustr/shop"))

    assert status == 1
    assert "did you mean cluster" in said
