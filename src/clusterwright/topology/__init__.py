"""Interpret a ClusterClass and the topology of a Cluster with pure functions: variables, patches, desired objects, upgrades."""
