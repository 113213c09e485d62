"""The MachineDeployment controller: rolls changes out over MachineSets.

    build, reconciler, observing      the wiring, the pass, its reads
    templates, revisions, rollout     the wanted MachineSet, its revision, the number of Machines of each (pure)
    desired                           the MachineSets (pure)
    plan, conditions, status, guards  tables, counters and phase (pure)

It watches its MachineSets, orphans that match its selector, the Machines below, its Cluster, and its templates. Names of MachineSets
are derived from the template, so that a repeated creation finds the first; none is created next to one that a cache does not show.
"""
