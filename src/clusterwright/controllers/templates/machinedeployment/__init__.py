"""Collects the templates of MachineDeployments."""
