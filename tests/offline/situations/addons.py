"""Situations of ClusterResourceSets and of addresses."""

from __future__ import annotations

import base64

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.simulation.plane import Plane
from offline.live import CLUSTER, NAMESPACE, key
from offline.situations.making import INFRASTRUCTURE, condition, definition, with_provider
from offline.situations.truth import BROKEN, Make, Situation
from offline.situations.workers import no_network

_CRS = "addons.cluster.x-k8s.io/v1beta2"
_IPAM = "ipam.cluster.x-k8s.io/v1beta2"


def applied(source: Json, *, label: str = "calico", selected: str = "calico") -> Make:
    """A ClusterResourceSet and what it is to apply."""

    async def make(p: Plane) -> None:
        await p.client.create({**source, "metadata": {"name": "cni", "namespace": NAMESPACE}})
        spec = {
            "clusterSelector": {"matchLabels": {"cni": selected}},
            "resources": [{"kind": source["kind"], "name": "cni"}],
            "strategy": "ApplyOnce",
        }
        await p.client.create(
            {"apiVersion": _CRS, "kind": "ClusterResourceSet", "metadata": {"name": "addons", "namespace": NAMESPACE}, "spec": spec}
        )
        await p.client.patch(CLUSTER, key("c"), {"metadata": {"labels": {"cni": label}}})

    return make


_POLICY = "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: kube-system}\nspec: {}\n"
_PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p, namespace: kube-system}\ndata: {}\n"


def config_map(content: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"all.yaml": content}}


def opaque(content: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"all.yaml": base64.b64encode(content.encode()).decode()}}


async def selects_nothing(p: Plane) -> None:
    await applied(config_map(_PLAIN), label="Calico")(p)
    await no_network(p)


def claim(pool: bool, conditions: list[Json]) -> Make:
    """A machine of another provider that waits for an address."""

    async def make(p: Plane) -> None:
        (name,) = await with_provider(p)
        acme = GroupVersionKind(INFRASTRUCTURE, "v1beta2", "AcmeMachine")
        await p.client.create(definition("AcmeIPPool", group="ipam.cluster.x-k8s.io"))
        if pool:
            await p.client.create(
                {"apiVersion": _IPAM, "kind": "AcmeIPPool", "metadata": {"name": "vlan-12", "namespace": NAMESPACE}, "spec": {}}
            )
        owner = await p.client.get(acme, key(name))
        reference = {"apiVersion": f"{INFRASTRUCTURE}/v1beta2", "kind": "AcmeMachine", "name": name, "uid": owner.metadata.uid}
        labels = {"cluster.x-k8s.io/cluster-name": "c"}
        metadata = {"name": f"{name}-eth0", "namespace": NAMESPACE, "labels": labels, "ownerReferences": [reference]}
        spec = {"clusterName": "c", "poolRef": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "AcmeIPPool", "name": "vlan-12"}}
        await p.client.create({"apiVersion": _IPAM, "kind": "IPAddressClaim", "metadata": metadata, "spec": spec})
        if conditions:
            gvk = GroupVersionKind("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim")
            await p.client.patch(gvk, key(f"{name}-eth0"), {"status": {"conditions": conditions}}, subresource="status")
        waiting = [condition("Ready", "False", "WaitingForAddress", f"waiting for IPAddressClaim {name}-eth0")]
        await p.client.patch(acme, key(name), {"status": {"conditions": waiting}}, subresource="status")

    return make


_EXHAUSTED = condition("Ready", "False", "PoolExhausted", "IP pool vlan-12 has no free addresses")
SITUATIONS = [
    Situation(name="resource set applies an unknown kind", make=applied(config_map(_POLICY)), object="ConfigMap/cni|ClusterResourceSet/addons", what="CiliumNetworkPolicy",
              next="CiliumNetworkPolicy", states=BROKEN),
    Situation(name="Secret of the wrong type", make=applied(opaque(_PLAIN)), object="Secret/cni", field="type", what="addons.cluster.x-k8s.io/resource-set",
              who="author of Secret", next="type", states=BROKEN),
    Situation(name="resource set selects nothing", make=selects_nothing, object="Machine/md-*|ClusterResourceSet/addons", what="", next="addons|network", who="",
              never="delete the Machine", states=BROKEN),
    Situation(name="pool of addresses exhausted", make=claim(True, [_EXHAUSTED]), object="IPAddressClaim/acme-*|AcmeIPPool/vlan-12", who="AcmeIPPool vlan-12",
              next="enlarge|free", never="correct the spec", states=BROKEN),
    Situation(name="pool of addresses missing", make=claim(False, []), object="AcmeIPPool/vlan-12", field="spec.poolRef", who="author of IPAddressClaim|infrastructure provider",
              states=BROKEN),
]  # fmt: skip
