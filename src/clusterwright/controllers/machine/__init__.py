"""The Machine controller: one host, from the first reference to a bootstrap config until its Node and its machine are gone.

A pass (`reconciler`) reads the objects that the Machine refers to and copies their values (`plan`), finds and syncs its Node
(`node`, `remote`), works on deletion or on an in-place update (`inplace`), and concludes with the conditions (`conditions`) and the
rest of the status (`status`). Deletion (`deletion`) goes in three tables: may the Node be touched (`node_access`); what runs on it
goes (`node_shutdown`, with `drain` and `volumes`); then the host, what it was made from, and the Node itself (`host_deletion`).
Everything but `reconciler`, `deletion`, `remote` and `node_watches` is pure.

Watches: Machines; their Cluster, MachineSet and MachineDeployment; every kind of bootstrap config and infrastructure machine that
they refer to; connection and Nodes of their workload cluster, and, while a Machine is drained, its Pods and VolumeAttachments.

Owns the conditions Paused, Available, Ready, BootstrapConfigReady, InfrastructureReady, NodeReady, NodeHealthy, Deleting and
Updating; writes UpToDate for the workers of a MachineDeployment.
"""
