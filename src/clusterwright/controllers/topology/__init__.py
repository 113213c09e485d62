"""The topology controller: makes a Cluster what its ClusterClass and `spec.topology` say.

It reads the class with its templates (blueprint) and what there is (current state), has the pure package `clusterwright.topology` compute
what there should be, and applies the difference as manager `capi-topology`. See `conditions` for `TopologyReconciled`.

Watches: Clusters with a topology; their ClusterClasses; MachineDeployments and MachinePools that belong to a topology; the objects that
the Cluster refers to.
"""
