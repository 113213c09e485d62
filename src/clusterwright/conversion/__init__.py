"""Objects of one version as objects of another: v1beta2 is the hub, every other version a spoke of it.

Pure: what a conversion has to know besides the object (which CRDs there are) is passed in.
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
