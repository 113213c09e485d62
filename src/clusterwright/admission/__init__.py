"""Admission of our own kinds: what webhooks do elsewhere, in the API server's own process."""

from __future__ import annotations

from collections.abc import Mapping

from clusterwright.admission.kubeadmconfig import KubeadmConfigAdmission
from clusterwright.admission.kubeadmcontrolplane import KubeadmControlPlaneAdmission
from clusterwright.apiserver.admission import Admission


def chain(features: Mapping[str, bool]) -> tuple[Admission, ...]:
    """A link for every kind that has rules of its own; `features` are the gates that are on."""
    return (KubeadmConfigAdmission(features), KubeadmControlPlaneAdmission(features))
