"""The KubeadmControlPlane controller: a control plane made of Machines and set up by kubeadm.

Watches: the control plane; Machines that it controls; its Cluster; connections to the workload cluster.
Owns the conditions Available, Initialized, CertificatesAvailable, EtcdClusterHealthy, ControlPlaneComponentsHealthy, MachinesReady,
MachinesUpToDate, RollingOut, ScalingUp, ScalingDown, Remediating and Deleting of the control plane, and on its Machines UpToDate,
the `*PodHealthy`, EtcdMemberHealthy, NodeKubeadmLabelsAndTaintsSet and, on the one it remediates, OwnerRemediated.

    observe     reads the management cluster           inspection   looks into the workload cluster
    scope       one pass: what was read and found      reconcile    the steps, in order
    conditions, health                                 the tables   (pure)
    scale, rollout, remediation, quorum, uptodate      the choices  (pure)
    desired, naming, ownership                         the objects  (pure)
    objects, membership, certificates, addons          the acts
"""
