"""KubeadmConfig: bootstrap data for one Machine or MachinePool, as a Secret.

    purpose     cloud-config or Ignition that runs `kubeadm init` on the first control-plane Machine, `kubeadm join` on all others
    watches     Machines and MachinePools that refer to a config, their Cluster, the init lock, certificate Secrets, the
                connection to the workload cluster
    owns        conditions Ready, DataSecretAvailable, CertificatesAvailable, Paused and their v1beta1 form; the Secret with the
                data, the init lock, bootstrap tokens on the workload cluster; certificates of a stand-alone control plane

One pass is a short script (`reconciler.py`) in which every choice is a table (`plan.py`, `conditions.py`) or a pure function of `kubeadm/`.
"""
