"""An embedded Kubernetes API server: the management cluster, and one instance per simulated workload cluster."""
