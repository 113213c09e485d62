"""The admission chain: what may change or refuse a write."""

from __future__ import annotations

from clusterwright.apiserver.admission.attributes import Admission, Attributes, Operation

__all__ = ["Admission", "Attributes", "Operation"]
