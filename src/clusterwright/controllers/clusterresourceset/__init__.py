"""The ClusterResourceSet controller: resources that every matching Cluster gets.

A pass (`reconciler`) finds the Clusters that the selector matches, makes the listed ConfigMaps and Secrets its own, and applies what is in
them (`content`) to each Cluster's workload cluster (`applying`); the Cluster's binding records what was applied when (`bindings`).
`content`, `bindings` and `conditions` are pure.

Watches: ClusterResourceSets; Clusters and their connection; ConfigMaps and Secrets.

Owns the conditions Paused and ResourcesApplied, and the v1beta1 condition ResourcesApplied.
"""
