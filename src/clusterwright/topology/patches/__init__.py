"""Patches of a ClusterClass: which templates they select, what values they give, and what the desired objects are afterwards."""

from clusterwright.topology.patches.engine import PatchError, apply_patches
from clusterwright.topology.patches.variables import PatchVariables, patch_variables

__all__ = ["PatchError", "PatchVariables", "apply_patches", "patch_variables"]
