"""The CEL rules of our schemas, with the messages of the Cluster API."""

from __future__ import annotations

from clusterwright.api.constraints import Cel

UNHEALTHY_MACHINE_CONDITION = Cel(
    "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
    "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated",
)
UNIQUE_MACHINES = Cel("self.all(x, self.exists_one(y, x == y))", "entries in machines must be unique")
UNIQUE_PODS = Cel("self.all(x, self.exists_one(y, x == y))", "entries in pods must be unique")
UNIQUE_EXTRA_ARGS = Cel("self.all(x, self.exists_one(y, x.name == y.name))", "extraArgs name must be unique")
UNIQUE_KUBELET_EXTRA_ARGS = Cel("self.all(x, self.exists_one(y, x.name == y.name))", "kubeletExtraArgs name must be unique")
ONE_LAYOUT = Cel(
    "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1",
    "exactly one of the fields in [layout diskLayout] must be set",
)
PARTITION_TYPE = Cel(
    "self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')",
    "partitionType must be one of Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or a full GPT partition GUID",
)
