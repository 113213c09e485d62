"""What a simulated machine does over time: VM, kubelet, static pods, etcd members."""
