"""Variables of ClusterClasses and their values in Clusters: definitions, defaults, validation.

Everything here is a function of plain JSON. Values are lists of `{name, value}`, definitions those of `status.variables` of a ClusterClass.
"""

from clusterwright.topology.variables.cluster import default_and_validate, default_topology, validate_topology
from clusterwright.topology.variables.definitions import validate_definitions
from clusterwright.topology.variables.values import BadValues, default_values, joined, validate_values

__all__ = [
    "BadValues",
    "default_and_validate",
    "default_topology",
    "default_values",
    "joined",
    "validate_definitions",
    "validate_topology",
    "validate_values",
]
