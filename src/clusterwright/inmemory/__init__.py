"""Simulate machines over time: VM, kubelet, static Pods, etcd members."""
