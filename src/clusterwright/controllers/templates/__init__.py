"""The two collectors of templates that topologies created: one for MachineDeployments, one for MachineSets.

A template goes when the last MachineDeployment or MachineSet that uses it does.
"""
