"""The ClusterResourceSetBinding controller: it deletes a binding after its Cluster, and lets the spec name that Cluster.

A binding has neither finalizer nor status: a pass (`reconciler`) reads the Cluster and does what one table says (`plan`).

Watches: bindings; Clusters.
"""
