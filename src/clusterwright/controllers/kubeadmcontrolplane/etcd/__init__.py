"""The etcd cluster of a control plane: quorum arithmetic, and every change of membership."""
