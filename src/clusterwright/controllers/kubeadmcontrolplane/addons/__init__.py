"""What kubeadm installed once and nobody else upgrades: kube-proxy, CoreDNS, its own configuration, permissions."""
