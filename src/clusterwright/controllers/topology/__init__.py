"""The topology controller: brings a Cluster to the state in its ClusterClass and `spec.topology`.

A pass (`reconciler`) reads the class with its templates (`blueprint`) and the objects that exist (`current`), lets the pure package
`clusterwright.topology` compute what they should be, and applies the difference as manager `capi-topology` (`writing`). See `conditions`
for `TopologyReconciled`.

Watches: Clusters with a topology; their ClusterClasses; MachineDeployments and MachinePools that belong to a topology; the objects that
the Cluster refers to.
"""
