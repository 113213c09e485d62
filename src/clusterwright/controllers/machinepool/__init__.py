"""The MachinePool controller: a pool of hosts that the infrastructure scales as one.

A pass (`reconciler`) reads the pool's bootstrap config and infrastructure and copies their values (`plan`), mirrors the
infrastructure's machines as Machines (`machines`), finds the Nodes of the pool's provider IDs (`nodes`), and concludes with counters,
phase (`status`) and the deprecated conditions (`conditions`). Everything but `reconciler`, `applied` and `node_watches` is pure.

Watches: MachinePools; their Cluster and its connection; the kinds of bootstrap configs, infrastructure pools and infrastructure machines
that they refer to; their Machines; the Nodes of their workload cluster.

Owns the condition Paused and the v1beta1 conditions Ready, BootstrapReady, InfrastructureReady and ReplicasReady; sets UpToDate on the
pool's Machines.
"""
