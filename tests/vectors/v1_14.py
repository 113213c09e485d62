"""What v1.14 changed in answers that were recorded from v1.13.5, by row of the comparison of the two releases.

A recorded text is replaced by the text of v1.14. A recorded conversation that v1.14 answers otherwise is named. Of a recorded pass that
decides otherwise, everything but the fields that differ is still compared, and these must differ.
"""

from __future__ import annotations

import json
from typing import Any

TEXTS = {
    "1.I, Ignition starts the script with bash": ("ExecStart=/etc/kubeadm.sh", "ExecStart=/bin/bash /etc/kubeadm.sh"),
    "B7, answers with another code than 200": ("!= 200: response: ", "!= 200: response : "),
}
CONVERSATIONS = {
    "devmachine-status": "A7: status.backend is gone",
    "devmachine-status-owners": "A7: status.backend is gone",
    "kubeadmcontrolplane-scale": "B9: replicas should be greater than zero",
    "kubeadmcontrolplane-scale-external-etcd": "B9: replicas should be greater than zero",
    "machine-version": "B8: versions are strict semantic versions",
    "machinedeployment-version": "B8: versions are strict semantic versions",
    "machinepool-version": "B8: versions are strict semantic versions",
    "machineset-version": "B8: versions are strict semantic versions",
}
_LEARNER = "1.I, #14199: an unnamed learner is kept for two minutes after a Node registered"
_LEADERSHIP = "C6, #13848: another candidate for the leadership of etcd"
_STATUS_ERRORS = "B5, #13846: errors in the status of an etcd endpoint do not count"


def _member_fields(*machines: str) -> frozenset[str]:
    return frozenset(
        {"conditions.EtcdClusterHealthy"}
        | {f"others.Machine/{m}.{form}.EtcdMemberHealthy" for m in machines for form in ("conditions", "v1beta1Conditions")}
    )


PASSES: dict[str, tuple[str, frozenset[str]]] = {
    "kcp-hook-26": (_LEADERSHIP, frozenset({"actions", "error", "status.observedGeneration"})),
    "kcp-random-0099": ("C6, #13848: without a candidate for the leadership", frozenset({"actions", "error", "status.observedGeneration"})),
    "kcp-random-0163": (_LEADERSHIP, frozenset({"actions"})),
    "kcp-random-0395": (_LEADERSHIP, frozenset({"actions"})),
    "kcp-random-0439": (_LEADERSHIP, frozenset({"actions"})),
    "kcp-random-0455": (_LEADERSHIP, frozenset({"actions"})),
    "kcp-remediation-21": (
        "C5, #13869: remediation between the steps of a chained upgrade",
        frozenset(
            {"conditions.Remediating", "actions", "requeueAfterSeconds"}
            | {f"others.Machine/m3.{form}.OwnerRemediated" for form in ("conditions", "v1beta1Conditions")}
        ),
    ),
    "kcp-remediation-31": (
        "B3, #13848: the reason for not remediating is said on the Machine",
        frozenset({"conditions.Remediating", "others.Machine/m3.conditions.OwnerRemediated"}),
    ),
    "kcph-etcd-error-06": (_STATUS_ERRORS, _member_fields("m1")),
    "kcph-etcd-error-07": (_STATUS_ERRORS, _member_fields("m1")),
    "kcph-etcd-error-08": (_STATUS_ERRORS, _member_fields("m1", "m2", "m3")),
    "kcph-random-0086": (_LEARNER, frozenset({"actions", "requeueAfterSeconds"})),
    "kcph-random-0297": (_LEARNER, frozenset({"actions", "requeueAfterSeconds"})),
}
"""By the vector's id: the row that changes it, and the fields of the answer that differ."""


def updated(recorded: Any) -> Any:
    """Return a recorded answer as v1.14 would give it."""
    text = json.dumps(recorded)
    for before, after in TEXTS.values():
        text = text.replace(before, after)
    return json.loads(text)
