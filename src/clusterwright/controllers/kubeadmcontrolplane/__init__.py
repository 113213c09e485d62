"""The KubeadmControlPlane controller: a control plane made of Machines and set up by kubeadm.

Watches: the control plane; Machines that it controls; its Cluster and Secrets; the workload cluster, its Nodes and static Pods.
Owns the conditions Available, Initialized, CertificatesAvailable, EtcdClusterHealthy, ControlPlaneComponentsHealthy, MachinesReady,
MachinesUpToDate, RollingOut, ScalingUp, ScalingDown, Remediating and Deleting of the control plane, and on its Machines UpToDate,
the `*PodHealthy`, EtcdMemberHealthy, NodeKubeadmLabelsAndTaintsSet and, on the one it remediates, OwnerRemediated.

A pass evaluates its tables in this order, and ends with the first that decides to end it:

    plan.PREPARE        template, infrastructure, endpoint; certificates, kubeconfig, what Machines should be
    inspection.INSPECT  whether the workload cluster is looked at; then Nodes, static Pods, etcd
    plan.LEAVE          etcd members of nobody, Machines that are deleted
    machines.remediation.REMEDIATE
    plan.SCALE          rollout and scale, if preflight.PREFLIGHT passes; machines.in_place.IN_PLACE; else addons
    plan.DELETE         instead of all this, once the control plane is deleted
"""
