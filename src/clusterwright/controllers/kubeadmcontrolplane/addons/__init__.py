"""Maintain what kubeadm installs once and never upgrades: kube-proxy, CoreDNS, its own configuration, permissions."""
