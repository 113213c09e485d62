"""What a ClusterClass and the topology of a Cluster mean, as pure functions: variables, patches, desired objects, upgrades."""
