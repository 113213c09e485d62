"""The ClusterResourceSetBinding controller: it deletes a binding after its Cluster, and adds the Cluster's name to the spec.

A binding has neither finalizer nor status: a pass (`reconciler`) reads the Cluster and follows one table (`plan`).

Watches: bindings; Clusters.
"""
