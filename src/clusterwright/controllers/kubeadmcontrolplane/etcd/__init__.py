"""The etcd cluster below a control plane: its arithmetic, and every change of its membership."""
