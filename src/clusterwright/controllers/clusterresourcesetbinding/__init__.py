"""The ClusterResourceSetBinding controller: a binding goes with its Cluster, and says in its spec which that is.

A binding has neither finalizer nor status: a pass (`reconciler`) reads the Cluster and does what one table says (`plan`).

Watches: bindings; Clusters.
"""
