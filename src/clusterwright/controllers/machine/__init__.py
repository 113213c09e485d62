"""The Machine controller: one host, from the first reference to a bootstrap config until its Node and its machine are gone.

A pass (`reconciler`) reads the objects that the Machine refers to (`ownership`, `plan`), finds and syncs its Node (`node`,
`remote`), works on deletion (`teardown`, by `deletion`, `release`, `drain`, `volumes`, `removal`) or on an in-place update
(`inplace`), and concludes with the conditions (`conditions`) and the rest of the status (`status`). Everything but `reconciler`,
`teardown`, `remote`, `work` and `wakes` is pure.

Watches: Machines; their Cluster, MachineSet and MachineDeployment; every kind of bootstrap config and infrastructure machine that
they refer to; connection and Nodes of their workload cluster, and, while a Machine is drained, its Pods and VolumeAttachments.

Owns the conditions Paused, Available, Ready, BootstrapConfigReady, InfrastructureReady, NodeReady, NodeHealthy, Deleting and
Updating; writes UpToDate for the workers of a MachineDeployment.
"""
