"""Connections to workload clusters: their health, remote objects, etcd."""
