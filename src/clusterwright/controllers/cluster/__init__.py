"""The Cluster controller: it connects a Cluster's infrastructure and control plane, and reports the state of the whole.

One pass: read everything into a frozen `ClusterSnapshot`; make the referenced objects ours; run the phase tables, which change
the Cluster in memory; delete or create what they say; decide every condition by its table; write one patch.

    snapshot.py    what was seen                      plan.py        phase tables: infrastructure, control plane,
    providers.py   what provider objects say                         deletion, kubeconfig (pure)
    conditions*.py the condition tables (pure)        status.py      phase and counters (pure)
    kubeconfig.py  the kubeconfig Secret              reconciler.py  the edge: reads, writes, order

Watches: Cluster, Machine, MachineDeployment, MachineSet, MachinePool, ClusterClass, the Secrets it waits for, the connection to
the workload cluster, and the kinds that references name. Owns sixteen conditions and three v1beta1 ones; see docs/tables/cluster.md.
"""
