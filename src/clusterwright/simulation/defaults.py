"""The Kubernetes version of sample clusters. The module imports nothing, because help texts show it."""

KUBERNETES_VERSION = "v1.34.1"
