"""Admission of our own kinds; elsewhere, webhooks do this.

One module per kind has its rules as rows (`rule.py`); `hook.py` evaluates them and words the refusal; `registry.py` lists all hooks.
`chain` adds them to the embedded API server.
"""

from __future__ import annotations

from collections.abc import Mapping

from clusterwright.admission.link import OwnKinds
from clusterwright.admission.workloads import Workloads
from clusterwright.apiserver.attributes import Admission


def chain(features: Mapping[str, bool], workloads: Workloads | None = None) -> tuple[Admission, ...]:
    """Return the link for all our kinds with rules; `features` are the gates that are on, `workloads` may be connected later."""
    return (OwnKinds(features, workloads or Workloads()),)


__all__ = ["Workloads", "chain"]
