"""The KubeadmControlPlane controller: a control plane made of Machines and set up by kubeadm.

Watches: the control plane; Machines that it controls; its Cluster; connections to the workload cluster.
Owns the conditions Available, Initialized, CertificatesAvailable, EtcdClusterHealthy, ControlPlaneComponentsHealthy, MachinesReady,
MachinesUpToDate, RollingOut, ScalingUp, ScalingDown, Remediating and Deleting of the control plane, and on its Machines UpToDate,
the `*PodHealthy`, EtcdMemberHealthy, NodeKubeadmLabelsAndTaintsSet and, on the one it remediates, OwnerRemediated.

    reconcile    the steps of a pass, in order          scope        one pass: what was read and found
    observe      reads the management cluster           inspection   looks into the workload cluster
    departure, replacement, scaling, deletion           the acts: leaving etcd, remediation, rollout and scale, the end
    objects, membership, certificates, addons           what the acts are made of
    conditions, health                                  the tables (pure)
    scale, rollout, remediation, quorum, uptodate       the choices (pure)
    desired, naming, corefile                           the objects (pure)
"""
