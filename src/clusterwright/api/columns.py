"""The columns that `kubectl get` shows for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterwright.api.meta import Json


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `wide` ones need `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def json(self) -> Json:
        """Return the column as an additionalPrinterColumns entry of a CRD."""
        column: Json = {"jsonPath": self.path, "name": self.name, "type": self.type}
        if self.wide:
            column["priority"] = 10
        return column


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_PAUSED = Column("Paused", '.status.conditions[?(@.type=="Paused")].status', wide=True)

_POOL = (
    Column("Addresses", ".spec.addresses"),
    Column("Total", ".status.ipAddresses.total", "integer"),
    Column("Free", ".status.ipAddresses.free", "integer"),
    Column("Used", ".status.ipAddresses.used", "integer"),
)

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "Cluster": (
        Column("ClusterClass", ".spec.topology.classRef.name"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("CP Desired", ".status.controlPlane.desiredReplicas", "integer"),
        Column("CP Current", ".status.controlPlane.replicas", "integer", wide=True),
        Column("CP Ready", ".status.controlPlane.readyReplicas", "integer", wide=True),
        Column("CP Available", ".status.controlPlane.availableReplicas", "integer"),
        Column("CP Up-to-date", ".status.controlPlane.upToDateReplicas", "integer"),
        Column("W Desired", ".status.workers.desiredReplicas", "integer"),
        Column("W Current", ".status.workers.replicas", "integer", wide=True),
        Column("W Ready", ".status.workers.readyReplicas", "integer", wide=True),
        Column("W Available", ".status.workers.availableReplicas", "integer"),
        Column("W Up-to-date", ".status.workers.upToDateReplicas", "integer"),
        _PAUSED,
        Column("Phase", ".status.phase"),
        _AGE,
        Column("Version", ".spec.topology.version"),
    ),
    "ClusterClass": (
        _PAUSED,
        Column("Variables Ready", '.status.conditions[?(@.type=="VariablesReady")].status'),
        _AGE,
    ),
    "Machine": (
        Column("Cluster", ".spec.clusterName"),
        Column("Node Name", ".status.nodeRef.name"),
        Column("Provider ID", ".spec.providerID", "string", wide=True),
        Column("Failure domain", ".status.failureDomain"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Up-to-date", '.status.conditions[?(@.type=="UpToDate")].status'),
        Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', "string", wide=True),
        Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', "string", wide=True),
        Column("OS-Image", ".status.nodeInfo.osImage", "string", wide=True),
        _PAUSED,
        Column("Phase", ".status.phase"),
        _AGE,
        Column("Version", ".spec.version"),
    ),
    "MachineSet": (
        Column("Cluster", ".spec.clusterName"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        _PAUSED,
        _AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    "MachineDeployment": (
        Column("Cluster", ".spec.clusterName"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        _PAUSED,
        Column("Phase", ".status.phase"),
        _AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    "MachinePool": (
        Column("Cluster", ".spec.clusterName"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        _PAUSED,
        Column("Phase", ".status.phase"),
        _AGE,
        Column("Version", ".spec.template.spec.version"),
    ),
    "MachineHealthCheck": (
        Column("Cluster", ".spec.clusterName"),
        Column("Replicas", ".status.expectedMachines", "integer"),
        Column("Healthy", ".status.currentHealthy", "integer"),
        _PAUSED,
        _AGE,
    ),
    "MachineDrainRule": (
        Column("Behavior", ".spec.drain.behavior"),
        Column("Order", ".spec.drain.order"),
        _AGE,
    ),
    "ClusterResourceSet": (
        Column("Applied", '.status.conditions[?(@.type=="ResourcesApplied")].status'),
        _PAUSED,
        _AGE,
    ),
    "ClusterResourceSetBinding": (
        Column("Cluster", ".spec.clusterName"),
        _AGE,
    ),
    "ExtensionConfig": (
        _PAUSED,
        Column("Discovered", '.status.conditions[?(@.type=="Discovered")].status'),
        _AGE,
    ),
    "IPAddress": (
        Column("Address", ".spec.address"),
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        _AGE,
    ),
    "IPAddressClaim": (
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        _AGE,
    ),
    "InClusterIPPool": _POOL,
    "GlobalInClusterIPPool": _POOL,
    "Provider": (
        Column("Type", ".type"),
        Column("Provider", ".providerName"),
        Column("Version", ".version"),
        Column("State", '.status.conditions[?(@.type=="Running")].reason'),
        Column("Restarts", ".status.restarts", "integer"),
        Column("Message", '.status.conditions[?(@.type=="Running")].message', wide=True),
        _AGE,
    ),
    "KubeadmConfig": (
        Column("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']"),
        _PAUSED,
        Column("Data secret created", ".status.initialization.dataSecretCreated"),
        _AGE,
    ),
    "KubeadmConfigTemplate": (
        Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name'),
        Column("Cluster", '.metadata.ownerReferences[?(@.kind=="Cluster")].name'),
        _AGE,
    ),
    "KubeadmControlPlane": (
        Column("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        _PAUSED,
        Column("Initialized", ".status.initialization.controlPlaneInitialized", "boolean"),
        _AGE,
        Column("Version", ".spec.version"),
    ),
    "KubeadmControlPlaneTemplate": (
        Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name'),
        _AGE,
    ),
    "DevCluster": (
        Column("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']"),
        _AGE,
    ),
    "DevClusterTemplate": (_AGE,),
    "DevMachinePool": (_AGE,),
    "DevMachinePoolTemplate": (_AGE,),
    "DevMachine": (
        Column("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']"),
        Column("Provider ID", ".spec.providerID", "string", wide=True),
        Column("Failure domain", ".status.failureDomain"),
        Column("IP", '.status.addresses[?(@.type=="InternalIP")].address', "string", wide=True),
        _PAUSED,
        Column("Provisioned", ".status.initialization.provisioned"),
        _AGE,
    ),
    "DevMachineTemplate": (_AGE,),
}
