"""Convert objects between versions: v1beta2 is the hub, every other version a spoke.

Pure: other facts (the existing CRDs) are arguments.
"""

from clusterwright.conversion.convert import (
    DATA_ANNOTATION,
    ConversionFailed,
    Versions,
    convert,
    convertible,
    versions_from_crds,
)

__all__ = ["DATA_ANNOTATION", "ConversionFailed", "Versions", "convert", "convertible", "versions_from_crds"]
