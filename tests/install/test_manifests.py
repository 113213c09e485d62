"""What `install` makes is accepted by an API server, is one source in three forms, and is what the manager then needs."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from clusterwright import app
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.auth.rbac import bootstrap_roles
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli import grammar, install, running
from clusterwright.gotemplate import parse
from clusterwright.gotemplate.sprig import FUNCTIONS
from clusterwright.install import forms
from clusterwright.install.manifests import Settings, manifests
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.world import START

CHOICES = {
    "default": Settings(),
    "sharded": Settings(shard=True, replicas=3),
    "namespaced": Settings(watch_namespace="team-a", controllers="cluster,machine*"),
    "bare": Settings(webhooks=False, controllers="dev*"),
}


def made(settings: Settings) -> list[Json]:
    selected = running.select(settings.controllers, app.selectable_names())
    return manifests(settings, app.declared(selected), migrates=running.names_migrator(settings.controllers))


@pytest.mark.parametrize("choice", CHOICES)
async def test_an_api_server_takes_everything_in_order_and_a_second_time(choice: str) -> None:
    seconds = count()
    server = ApiServer(now=lambda: START + timedelta(seconds=next(seconds)), random=Random(1))
    server.ensure_namespaces()
    server.ensure(bootstrap_roles())
    client = RestClient(InProcessTransport(server))
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
    objects = made(CHOICES[choice])
    for obj in objects:
        await client.apply(obj, field_manager="install")
    versions = {}
    for obj in [*objects, *objects]:
        key = ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        found = await client.apply(obj, field_manager="install")
        versions.setdefault((obj["kind"], key), set()).add(found.metadata.resource_version)

    assert all(len(seen) == 1 for seen in versions.values())
    server.close()


def test_no_role_of_a_namespaced_installation_reaches_beyond_it() -> None:
    objects = made(CHOICES["namespaced"])
    (wide,) = [o for o in objects if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "clusterwright-manager"]
    resources = {r for rule in wide["rules"] for r in rule["resources"]}
    providers = next(o for o in objects if o["kind"].endswith("RoleBinding") and o["metadata"]["name"].endswith("-providers"))

    assert not resources & {"secrets", "configmaps", "machines", "clusters", "*"}
    assert providers["kind"] == "RoleBinding"
    assert "--namespace=team-a" in deployment(objects)["args"]


def deployment(objects: list[Json]) -> Any:
    (found,) = [o for o in objects if o["kind"] == "Deployment"]
    return found["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_flags_of_the_deployment_are_flags_of_the_manager(choice: str) -> None:
    command, *flags = deployment(made(CHOICES[choice]))["args"]

    arguments = grammar.parse(command, flags)

    assert arguments.leader_elect is not CHOICES[choice].shard
    assert arguments.health_probe_bind_address == ("", 9440)
    assert arguments.metrics_bind_address == ("", 8443)


def test_the_pod_is_restricted() -> None:
    """As the restricted policy of Pod Security asks for it."""
    (found,) = [o for o in made(CHOICES["default"]) if o["kind"] == "Deployment"]
    pod = found["spec"]["template"]["spec"]
    container = pod["containers"][0]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["resources"]["requests"]
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= set(container)


def test_the_kustomize_base_holds_the_same_objects() -> None:
    files = forms.kustomize(made(CHOICES["default"]))
    base = yaml.safe_load(files["kustomization.yaml"])
    found = [obj for name in base["resources"] for obj in load(files[name])]

    assert sorted(map(identity, found)) == sorted(map(identity, made(CHOICES["default"])))
    assert {f"{n}" for n in files} == {"kustomization.yaml", *base["resources"]}


def identity(obj: Json) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def load(text: str) -> list[Json]:
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def rendered(files: dict[str, str], namespace: str, *, crds: bool = False, **values: Any) -> list[Json]:
    """The chart as Helm renders it, by our own templates; definitions only if asked for, because they are long."""
    data = {"Values": {**yaml.safe_load(files["values.yaml"]), **values}, "Release": {"Namespace": namespace}}
    texts = [
        parse(text, FUNCTIONS).render(data)
        for name, text in files.items()
        if name.startswith("templates/") and (crds or "/crds/" not in name)
    ]
    return [obj for text in texts for obj in load(text)]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_chart_with_its_own_values_is_the_plain_manifests(choice: str) -> None:
    settings = CHOICES[choice]
    files = forms.helm(made, settings, "1.2.3")
    whole = choice == "default"
    plain = [o for o in made(settings) if o["kind"] != "Namespace" and (whole or o["kind"] != "CustomResourceDefinition")]

    found = {identity(o): o for o in rendered(files, settings.namespace, crds=whole)}

    assert found == {identity(o): o for o in plain}
    assert yaml.safe_load(files["Chart.yaml"])["version"] == "1.2.3"


def test_the_values_of_the_chart_go_where_they_belong() -> None:
    files = forms.helm(made, Settings(), "1.2.3")
    more = ["--qps=50", "--tracing"]

    objects = rendered(files, "elsewhere", replicas=5, image="registry/x:1", arguments=more, resources={"limits": {"cpu": 2}})

    (found,) = [o for o in objects if o["kind"] == "Deployment"]
    assert found["spec"]["replicas"] == 5
    assert deployment(objects)["image"] == "registry/x:1"
    assert deployment(objects)["args"][-2:] == more
    assert deployment(objects)["resources"] == {"limits": {"cpu": 2}}
    assert {o["metadata"].get("namespace", "elsewhere") for o in objects} == {"elsewhere"}
    clients = [w["clientConfig"]["service"]["namespace"] for o in objects for w in o.get("webhooks", ())]
    assert set(clients) == {"elsewhere"}


def test_files_are_written_and_misuse_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.run(grammar.parse("install", ["--form", "kustomize", "--output-dir", str(tmp_path / "base")])) == 0
    assert (tmp_path / "base" / "kustomization.yaml").exists()
    capsys.readouterr()
    for wrong in (["--form", "helm"], ["--apply", "--form", "helm"], ["--controllers", "nobody"]):
        with pytest.raises(SystemExit):
            install.run(grammar.parse("install", wrong))
        assert "clusterwright install: --" in capsys.readouterr().err


def test_plain_yaml_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.run(grammar.parse("install", [])) == 0
    assert len(load(capsys.readouterr().out)) == len(made(Settings()))
