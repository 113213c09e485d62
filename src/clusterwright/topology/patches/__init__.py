"""Patches of a ClusterClass: the templates that they select, the values, and the patched objects."""

from clusterwright.topology.patches.engine import PatchError, apply_patches
from clusterwright.topology.patches.variables import PatchVariables, patch_variables

__all__ = ["PatchError", "PatchVariables", "apply_patches", "patch_variables"]
