"""Files that are Go templates: what they see, and what becomes of errors."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.crds import crds
from clusterwright.api.machine_setup import File
from clusterwright.controllers.kubeadmconfig.file_templates import MOST_BYTES, MOST_STEPS, rendered, template_data
from clusterwright.controllers.kubeadmconfig.material import MaterialFailed
from clusterwright.gotemplate import Budget
from support.kubeadmconfig import NS

GUARDED = "{{ if .controlPlane }}v={{ .controlPlane.version }}{{ end }}done"


def render(content: str, version: str = "v1.36.2", *, is_secret: bool = False, format_: str = "Template") -> str:
    file = File(path="/x", content=content, content_format=format_)
    return rendered(file, template_data(version), Budget(MOST_STEPS), is_secret=is_secret).content


def test_a_template_sees_the_version_of_the_control_plane() -> None:
    assert render("v={{ .controlPlane.version }}") == "v=v1.36.2"
    assert render(GUARDED) == "v=v1.36.2done"


def test_without_a_version_there_is_no_key() -> None:
    assert template_data("") == {}
    assert render(GUARDED, version="") == "done"
    assert render("{{ .controlPlane }}", version="") == "<no value>"


@pytest.mark.parametrize("format_", ["", "Raw"])
def test_other_files_stay_as_they_are(format_: str) -> None:
    assert render("{{ .nonsense", format_=format_) == "{{ .nonsense"


@pytest.mark.parametrize(
    ("content", "context"),
    [
        ("{{ .controlPlane.version ", 'failed to render templates: failed to parse template for file "/x": '),
        ("{{ range .controlPlane.version }}{{ end }}", 'failed to render templates: failed to execute template for file "/x": '),
    ],
)
def test_a_bad_template_is_named_by_its_file(content: str, context: str) -> None:
    with pytest.raises(MaterialFailed) as failed:
        render(content)

    assert str(failed.value).startswith(context)


@pytest.mark.parametrize("content", ["{{ hunter2 }}", "{{ .controlPlane.version.hunter2 }}"])
def test_an_error_quotes_nothing_of_a_secret(content: str) -> None:
    with pytest.raises(MaterialFailed, match="hunter2"):
        render(content)
    with pytest.raises(MaterialFailed) as failed:
        render(content, is_secret=True)

    assert "hunter2" not in str(failed.value)


def test_a_template_cannot_make_more_than_a_mebibyte() -> None:
    assert len(render("a" * MOST_BYTES)) == MOST_BYTES
    with pytest.raises(MaterialFailed, match='failed to execute template for file "/x": rendered output exceeds the 1048576 byte limit'):
        render("\u00e4" * (MOST_BYTES // 2 + 1))


def test_templates_of_one_config_have_one_budget() -> None:
    budget = Budget(MOST_STEPS)
    file = File(path="/x", content='{{ printf "%099999d" 1 }}', content_format="Template")
    before = budget.left
    rendered(file, {}, budget)
    spent = before - budget.left
    budget.charge(budget.left - spent + 1)

    with pytest.raises(MaterialFailed, match="too many steps"):
        rendered(file, {}, budget)


# ------------------------------------------------------------------------------------------- a whole pass


async def _control_plane(world: Any, version: str) -> None:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "cp"}
    spec = {"version": version, "replicas": 1, "machineTemplate": {"spec": {"infrastructureRef": reference}}}
    for crd in crds():
        if crd["spec"]["names"]["kind"] == "KubeadmControlPlane":
            await world.put(crd)
    api_version = "controlplane.cluster.x-k8s.io/v1beta2"
    await world.put({"apiVersion": api_version, "kind": "KubeadmControlPlane", "metadata": {"namespace": NS, "name": "cp"}, "spec": spec})


def _file(content: str, **more: str) -> dict[str, Any]:
    return {"files": [{"path": "/etc/x", "content": content, **more}]}


@pytest.mark.parametrize("version", ["v1.36.0", "1.36"])
async def test_a_worker_gets_a_file_for_the_version_of_its_control_plane(world: Any, version: str) -> None:
    await world.cluster(initialized=True)
    await world.certificates()
    await _control_plane(world, version)
    await world.worker(spec=_file(GUARDED, contentFormat="Template"))

    await world.reconcile()

    assert (await world.files())["/etc/x"]["content"].strip() == "v=v1.36.0done"


async def test_a_cluster_without_a_control_plane_leaves_the_version_out(world: Any) -> None:
    await world.cluster(initialized=True, control_plane_ref=False)
    await world.certificates()
    await world.worker(spec=_file(GUARDED, contentFormat="Template"))

    await world.reconcile()

    assert (await world.files())["/etc/x"]["content"].strip() == "done"


async def test_a_control_plane_that_is_not_there_is_an_error_only_where_a_template_needs_it(world: Any) -> None:
    await world.cluster(initialized=True)
    await world.certificates()
    await world.worker("m1", spec=_file("{{ raw"))
    await world.worker("m2", spec=_file(GUARDED, contentFormat="Template"))

    await world.reconcile("m1")
    assert (await world.files("m1"))["/etc/x"]["content"].strip() == "{{ raw"
    assert "failed to read control plane version: " in await world.failing("m2")
    said = (await world.conditions("m2"))["DataSecretAvailable"]
    assert said[:2] == ("False", "NotAvailable")
    assert said[2].startswith("Failed to prepare spec.files: failed to read control plane version: ")
