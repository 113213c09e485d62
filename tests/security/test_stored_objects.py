"""Objects of a tenant that controllers work on again and again: none of them keeps the event loop of a whole plane for long.

The plane is a process of its own, with all controllers and simulated machines. A second client asks for something small all the time.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from yarl import URL

from clusterwright.api.meta import Json
from clusterwright.simulation import samples
from security.target import Target, Wait, started

HUGE = 2147483647
TRIES = 5
WHOLE_PLANE = 0.1
"""Seconds of CPU time of the event loop for one answer: controllers work in it, too, and on a busy machine their work takes twice as long."""
LOOK = 1.2
"""Seconds in which the controllers are watched after an object was stored."""
PATHS = {
    "Cluster": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters",
    "ClusterClass": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusterclasses",
    "MachineDeployment": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments",
    "MachineSet": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinesets",
    "MachinePool": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinepools",
    "MachineHealthCheck": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinehealthchecks",
    "Machine": "apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines",
    "ClusterResourceSet": "apis/addons.cluster.x-k8s.io/v1beta2/namespaces/default/clusterresourcesets",
    "ExtensionConfig": "apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs",
    "DevCluster": "apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devclusters",
    "DevMachine": "apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devmachines",
    "DevMachinePool": "apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devmachinepools",
    "DevClusterTemplate": "apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devclustertemplates",
    "DevMachineTemplate": "apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devmachinetemplates",
    "DevMachinePoolTemplate": "apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devmachinepooltemplates",
    "KubeadmConfig": "apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmconfigs",
    "KubeadmConfigTemplate": "apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmconfigtemplates",
    "KubeadmControlPlane": "apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes",
    "KubeadmControlPlaneTemplate": "apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanetemplates",
    "Secret": "api/v1/namespaces/default/secrets",
    "ConfigMap": "api/v1/namespaces/default/configmaps",
}


def secret(name: str, data: dict[str, bytes], cluster: str) -> Json:
    labels = {"cluster.x-k8s.io/cluster-name": cluster}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret", "metadata": metadata, "data": encoded}


def kubeconfig(name: str, server: str) -> Json:
    text = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return secret(f"{name}-kubeconfig", {"value": json.dumps(text).encode()}, name)


def classed(name: str, **spec: Any) -> list[Json]:
    """A class with this in its spec, and a Cluster that uses it."""
    cluster = samples.topology(name, workers={"w": 1})
    cluster["spec"]["topology"]["classRef"]["name"] = name
    return [*samples.cluster_class(name, **spec), cluster]


def patched(name: str, template: str) -> list[Json]:
    selector = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevMachineTemplate",
        "matchResources": {"controlPlane": True},
    }
    patches = [{"op": "add", "path": f"/spec/template/metadata/labels/l{i}", "valueFrom": {"template": template}} for i in range(40)]
    return classed(name, patches=[{"name": "p", "definitions": [{"selector": selector, "jsonPatches": patches}]}])


def health_check(name: str, terms: int) -> list[Json]:
    check = samples.machine_health_check(name, name, labels={"a": "b"})
    values = [f"v{i}" for i in range(terms)]
    check["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": values}]}
    return [*samples.cluster(name), check]


def resource_set(name: str, resources: int) -> list[Json]:
    content = "\n---\n".join(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}"}}) for i in range(8_000))
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"a": content}}
    references = [{"kind": "ConfigMap", "name": name if not i else f"{name}-{i}"} for i in range(resources)]
    made = {
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
        "kind": "ClusterResourceSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterSelector": {"matchLabels": {"a": name}}, "resources": references, "strategy": "Reconcile"},
    }
    cluster = samples.cluster(name)
    cluster[0]["metadata"]["labels"] = {"a": name}
    return [held, made, *cluster]


def extension(name: str, url: str) -> list[Json]:
    made = {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": name},
        "spec": {"clientConfig": {"url": url}, "namespaceSelector": {}},
    }
    return [made]


def files(name: str, count: int, size: int) -> list[Json]:
    """A Machine whose bootstrap data consist of many files."""
    made = samples.machine(name, f"{name}-0", is_control_plane=True)
    for obj in made:
        if obj["kind"] == "KubeadmConfig":
            obj["spec"]["files"] = [{"path": f"/f{i}", "content": "x" * size} for i in range(count)]
    return [*samples.cluster(name), *made]


def many_machines(name: str, count: int) -> list[Json]:
    spec = {
        "clusterName": name,
        "bootstrap": {"dataSecretName": "none"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "none"},
    }
    machine = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}
    named = ({"name": f"{name}-{i}", "namespace": "default"} for i in range(count))
    return [*samples.cluster(name), *({**machine, "metadata": metadata, "spec": spec} for metadata in named)]


ATTACKS: dict[str, Callable[[str], list[Json]]] = {
    "replicas-machinedeployment": lambda n: [*samples.cluster(n), *samples.workers(n, n, replicas=HUGE)],
    "replicas-machineset": lambda n: [*samples.cluster(n), *samples.workers(n, n, kind="MachineSet", replicas=HUGE)],
    "replicas-controlplane": lambda n: [*samples.cluster(n, has_control_plane_object=True), *samples.control_plane(n, replicas=HUGE)],
    "replicas-machinepool": lambda n: [*samples.cluster(n), *samples.machine_pool(n, n, replicas=HUGE)],
    "template-uniq": lambda n: patched(n, "{{ len (uniq (until 5000)) }}"),
    "template-range": lambda n: patched(n, "{{ range until 20000 }}x{{ end }}"),
    "template-regex": lambda n: patched(n, '{{ regexMatch "(a+)+$" (repeat 50000 "a") }}'),
    "many-variables": lambda n: classed(
        n, variables=[{"name": f"v{i}", "required": False, "schema": {"openAPIV3Schema": {"type": "string"}}} for i in range(1000)]
    ),
    "health-check-selector": lambda n: health_check(n, 20_000),
    "resource-set": lambda n: resource_set(n, 100),
    "extension-to-loopback": lambda n: extension(n, "https://127.0.0.1:1/"),
    "extension-to-metadata-address": lambda n: extension(n, "https://169.254.169.254/latest/meta-data"),
    "many-files": lambda n: files(n, 400, 2_000),
    "kubeconfig-to-nobody": lambda n: [kubeconfig(n, "https://127.0.0.1:1"), *samples.cluster(n)],
    "kubeconfig-without-tls": lambda n: [kubeconfig(n, "http://127.0.0.1:1"), *samples.cluster(n)],
    "machines-without-infrastructure": lambda n: many_machines(n, 150),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    async with started(tmp_path_factory.mktemp("plane")) as found:
        yield found


async def store(target: Target, objects: list[Json]) -> None:
    for obj in objects:
        status, answer = await target.send("admin", "POST", f"/{PATHS[obj['kind']]}", json.dumps(obj).encode())
        assert status in (201, 403, 422), (status, answer[:300])
    await asyncio.sleep(LOOK)


async def remove(target: Target, objects: list[Json]) -> None:
    for obj in reversed(objects):
        await target.send("admin", "DELETE", f"/{PATHS[obj['kind']]}/{obj['metadata']['name']}")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ATTACKS)
async def test_an_object_of_a_tenant_does_not_stop_the_plane(plane: Target, name: str) -> None:
    found: list[list[Wait]] = []
    while len(found) < TRIES and all(found):
        objects = ATTACKS[name](f"{name}-{len(found)}")
        found.append(plane.stalls(await plane.waits(store(plane, objects)), WHOLE_PLANE))
        await remove(plane, objects)

    assert not all(found), f"the second client waited: {found}"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_kubeconfig_that_names_our_own_server_brings_no_rights(plane: Target) -> None:
    """The token in the Secret is all that is sent; the plane's own credentials are not."""
    url = URL(plane.url)
    objects = [kubeconfig("self", f"https://127.0.0.1:{url.port}"), *samples.cluster("self")]
    await plane.waits(store(plane, objects))
    status, answer = await plane.send("admin", "GET", f"/{PATHS['Cluster']}/self")
    conditions = {c["type"]: c for c in json.loads(answer)["status"]["conditions"]}
    await remove(plane, objects)

    assert status == 200
    assert conditions["RemoteConnectionProbe"]["status"] == "False"
