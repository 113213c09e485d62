"""The kit accepts providers that keep the contract: the in-memory one, the example of the documentation, one of the SDK."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import yaml

from clusterwright import provider
from clusterwright.api.core import Cluster, FailureDomain
from clusterwright.api.meta import Json
from clusterwright.conformance import Judgement, Options, Pace, Role, as_text
from clusterwright.provider import InfraCluster, InfraClusters, Site
from clusterwright.runtime.manager import Manager
from clusterwright.testing import judge, run_virtual, samples, virtual_plane
from kit.definitions import GROUP, definitions, template

EXAMPLE = Path(__file__).parents[2] / "examples" / "provider"
PACE = Pace(settle=8.0, steady=60.0, within=120.0)
DEV = "infrastructure.cluster.x-k8s.io/v1beta2"


def dev(kind: str) -> Json:
    return {"apiVersion": DEV, "kind": kind, "metadata": {"name": "t"}, "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}}}


class SiteCluster(InfraCluster):
    api_version: str = f"{GROUP}/v1"
    kind: str = "SiteCluster"


class Sites(InfraClusters[SiteCluster]):
    """A provider of cluster infrastructure with two failure domains."""

    kind = SiteCluster
    finalizer = f"sitecluster.{GROUP}"

    async def provision(self, obj: SiteCluster, cluster: Cluster) -> Site:
        domains = [FailureDomain(name=name, control_plane=True) for name in ("a", "b")]
        return Site(host=f"{obj.metadata.name}.example.com", failure_domains=domains)

    async def remove(self, obj: SiteCluster, cluster: Cluster | None) -> bool:
        return True


def judged(role: Role, of: Json, *, crds: list[Json] | None = None, setup: Any = None) -> Judgement:
    async def main() -> Judgement:
        async with virtual_plane(crds=[c for c in crds or () if c["kind"] == "CustomResourceDefinition"], setup=setup) as plane:
            await plane.apply([c for c in crds or () if c["kind"] != "CustomResourceDefinition"])
            return await judge(plane, role, of, Options(pace=PACE))

    return run_virtual(main())


def example() -> Any:
    spec = importlib.util.spec_from_file_location("example_provider", EXAMPLE / "provider.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_in_memory_machines_are_accepted() -> None:
    judgement = judged("InfraMachine", dev("DevMachineTemplate"))
    assert judgement.conforms, as_text([judgement])


def test_the_in_memory_pools_are_accepted() -> None:
    judgement = judged("InfraMachinePool", dev("DevMachinePoolTemplate"))
    assert judgement.conforms, as_text([judgement])
    assert {o.rule.id for o in judgement.outcomes if o.status == "passed"} >= {"MP-5", "MP-6", "MP-8", "MP-12"}, as_text([judgement])


def test_the_in_memory_clusters_are_accepted() -> None:
    judgement = judged("InfraCluster", dev("DevClusterTemplate"))
    assert judgement.conforms, as_text([judgement])


def test_the_example_of_the_documentation_is_accepted() -> None:
    racks = example().Racks

    def setup(manager: Manager) -> None:
        provider.add(manager, racks)

    crds = list(yaml.safe_load_all((EXAMPLE / "crds.yaml").read_text()))
    of = {"apiVersion": "infrastructure.example.com/v1alpha1", "kind": "RackMachineTemplate", "metadata": {"name": "t"}}
    judgement = judged("InfraMachine", {**of, "spec": {"template": {"spec": {}}}}, crds=crds, setup=setup)
    assert judgement.conforms, as_text([judgement])


def test_a_cluster_kind_of_the_sdk_is_accepted() -> None:
    kind, of_template = definitions("InfraCluster", "Site")
    judgement = judged("InfraCluster", template("InfraCluster", "Site"), crds=[kind, of_template], setup=lambda m: provider.add(m, Sites))
    assert judgement.conforms, as_text([judgement])


def test_the_bootstrap_configs_of_kubeadm_are_accepted() -> None:
    kind = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "metadata": {"name": "t"}}
    judgement = judged("BootstrapConfig", {**kind, "spec": {"template": {"spec": {"format": "cloud-config"}}}})
    assert judgement.conforms, as_text([judgement])
    assert judgement.outcomes[4].status == "passed", as_text([judgement])


def test_the_control_planes_of_kubeadm_are_accepted() -> None:
    objects = samples.control_plane("any", replicas=1)
    (plane,) = [obj for obj in objects if obj["kind"] == "KubeadmControlPlane"]
    judgement = judged("ControlPlane", plane, crds=[obj for obj in objects if obj is not plane])
    assert judgement.conforms, as_text([judgement])
    assert {o.rule.id for o in judgement.outcomes if o.status == "passed"} >= {"CP-6", "CP-7", "CP-9", "CP-14"}, as_text([judgement])
