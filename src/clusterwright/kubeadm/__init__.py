"""The bootstrap domain: certificates, tokens, kubeadm documents, cloud-init and Ignition. Pure."""
