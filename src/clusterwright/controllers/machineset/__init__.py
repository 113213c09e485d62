"""The MachineSet controller: keeps a number of equal Machines.

    build, reconciler, observing      the wiring, the pass, its reads
    machine_writer, creation, inplace what is done to Machines
    desired, deletion_order           the objects, and which Machine goes first (pure)
    preflight, remediation, moves     preflight checks; replacement; in-place updates (pure)
    plan, conditions, status, guards  tables and counters (pure)

It watches its Machines, orphans that match its selector, its MachineDeployment, its Cluster, the control plane while it waits for
it, and its templates. None is created for a number that only a cache shows: the API server is asked first, and names are derived
from the Machines that are there, so that who repeats a creation meets what it made.
"""
