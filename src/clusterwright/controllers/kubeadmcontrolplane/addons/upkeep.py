"""The maintenance that follows once all Machines are up to date."""

from __future__ import annotations

from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CERTIFICATES_EXPIRY_ANNOTATION
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.addons.coredns import update_coredns
from clusterwright.controllers.kubeadmcontrolplane.addons.kube_proxy import update_kube_proxy
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run
from clusterwright.controllers.kubeadmcontrolplane.machines.creation import sweep
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.workload.access import NotConnected


async def maintain(writer: MachineWriter, run: Run) -> None:
    """Maintain leftovers, kube-proxy, CoreDNS and the expiry of certificates; nothing without a connection. Raises PassFailed."""
    try:
        client = await workload_client(writer.deps, run.seen.cluster.key)
    except NotConnected:
        return
    except WorkloadUnavailable as error:
        raise PassFailed(f"failed to create client to workload cluster: {error}") from error
    await sweep(writer, run)
    await update_kube_proxy(run.done, client)
    await update_coredns(run.done, client)
    if run.done.initialized:
        for machine in run.done.owned:
            await _write_down_expiry(writer, run.done, machine)


async def _write_down_expiry(writer: MachineWriter, seen: ControlPlaneSnapshot, machine: ControlPlaneMachine) -> None:
    """Record when the API server certificate of a Machine expires; once, because a Machine never renews it."""
    config = machine.config
    if machine.deleting or not machine.has_node or config is None or CERTIFICATES_EXPIRY_ANNOTATION in config.metadata.annotations:
        return
    try:
        expiry = await writer.deps.workload.serving_certificate_expiry(seen.cluster.key, machine.node, api_server_port(config))
        stamp = expiry.strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {"metadata": {"annotations": {CERTIFICATES_EXPIRY_ANNOTATION: stamp}}}
        await writer.deps.client.patch(config.gvk, config.key, body)
    except (ApiError, OSError, ValueError) as error:
        failed = PassFailed(f"failed to get certificate expiry for Machine {machine.name}: {error}")
        failed.is_expected = isinstance(error, NotFound)  # a Pod that is still to come, or gone, is told of by the Machine's conditions
        raise failed from error


def api_server_port(config: Unstructured) -> int:
    """Return the port of a Machine's API server, as its KubeadmConfig sets it."""
    for path in (("initConfiguration", "localAPIEndpoint"), ("joinConfiguration", "controlPlane", "localAPIEndpoint")):
        port = config.at("spec", *path, "bindPort")
        if isinstance(port, int) and port:
            return port
    return 6443
