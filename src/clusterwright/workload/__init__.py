"""Reaching into workload clusters: connections and their health, remote objects, etcd."""
