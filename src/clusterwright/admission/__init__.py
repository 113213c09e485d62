"""Admission of our own kinds: what webhooks do elsewhere.

One module per kind has its rules as rows (`rule.py`); `hook.py` asks them and words the refusal; `registry.py` names all hooks.
`chain` puts them into the embedded API server.
"""

from __future__ import annotations

from collections.abc import Mapping

from clusterwright.admission.link import OwnKinds
from clusterwright.admission.workloads import Workloads
from clusterwright.apiserver.attributes import Admission


def chain(features: Mapping[str, bool], workloads: Workloads | None = None) -> tuple[Admission, ...]:
    """Return the link for all kinds that have rules of their own; `features` are the gates that are on, `workloads` may be lent later."""
    return (OwnKinds(features, workloads or Workloads()),)


__all__ = ["Workloads", "chain"]
