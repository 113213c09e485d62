"""The MachineSet controller: keeps a number of equal Machines.

    build, reconciler, observing      the wiring, the pass, its reads
    machine_writer, creation,         actions on Machines: write, create,
    sync, inplace                     sync with the template, update in place
    desired, deletion_order           the objects, and which Machine goes first (pure)
    preflight, remediation, moves     preflight checks; replacement; in-place updates (pure)
    plan, conditions, status, guards  tables and counters (pure)

It watches its Machines, orphans that match its selector, its MachineDeployment, its Cluster, the control plane while it waits for
it, and its templates. None is created for a number that only a cache shows: the API server is asked first, and names are derived
from the existing Machines, so that a repeated creation finds the first.
"""
