"""The Service `kubernetes`, with which clients in the cluster reach the server."""

from __future__ import annotations

import ipaddress

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.system import loading
from clusterwright.apiserver.system.serviceaddresses import DEFAULT_CIDR

_LABELS = {"component": "apiserver", "provider": "kubernetes"}


def advertise(server: Core, host: str, port: int) -> None:
    """Create or update the Service and its endpoints. Do nothing on a server without Services or the namespace `default`."""
    if server.registry.find("", "v1", "services") is None or "default" not in server.store.table("namespaces").objects:
        return
    address = _address(host)
    meta = {"name": "kubernetes", "namespace": "default"}
    service: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**meta, "labels": _LABELS},
        "spec": {
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }
    endpoint = {"name": "https", "port": port, "protocol": "TCP"}
    endpoints: Json = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**meta, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": [endpoint]}],
    }
    a_slice: Json = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [endpoint],
    }
    wanted = [service, endpoints]
    if server.registry.find("discovery.k8s.io", "v1", "endpointslices") is not None:
        wanted.append(a_slice)
    loading.ensure(server, wanted, update=True)
    if server.registry.find("networking.k8s.io", "v1", "servicecidrs") is not None:
        loading.ensure(server, [_addresses(server)], update=False)
    server.drain()


def _addresses(server: Core) -> Json:
    """Return the ServiceCIDR `kubernetes`, which clients read for the address range of Services."""
    ready = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes default Service CIDR is ready"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [DEFAULT_CIDR]},
        "status": {"conditions": [{**ready, "lastTransitionTime": server.timestamp()}]},
    }


def _address(host: str) -> str:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return "127.0.0.1"
    return "127.0.0.1" if found.is_unspecified else str(found)
