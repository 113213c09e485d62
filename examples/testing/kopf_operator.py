"""An operator with kopf: it writes the number of a MachineDeployment's replicas as a label."""

import kopf


@kopf.on.create("cluster.x-k8s.io", "v1beta2", "machinedeployments")
@kopf.on.field("cluster.x-k8s.io", "v1beta2", "machinedeployments", field="spec.replicas")
def label(spec, patch, **_):
    patch.metadata.labels["example.com/replicas"] = str(spec.get("replicas", 0))
