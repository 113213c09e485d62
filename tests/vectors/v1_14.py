"""What v1.14 changed in answers that were recorded from v1.13.5, by row of the comparison of the two releases.

A recorded text is replaced by the text of v1.14. A recorded conversation that v1.14 answers otherwise is named. Of a recorded pass that
decides otherwise, everything but the fields that differ is still compared, and these must differ.
"""

from __future__ import annotations

import json
from pathlib import Path
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


def _passes() -> dict[str, frozenset[str]]:
    rows: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "v1_14.json").read_text())
    return {id: frozenset(fields) for changed in rows.values() for id, fields in changed.items()}


PASSES = _passes()
"""By the vector's id: the fields of the answer that differ. The file names the row that changes them."""


STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
"""C8, #13760: the annotation of a Cluster that goes with the end of an upgrade; before, it was emptied."""


def updated(recorded: Any) -> Any:
    """Return a recorded answer as v1.14 would give it."""
    text = json.dumps(recorded)
    for before, after in TEXTS.values():
        text = text.replace(before, after)
    answer = json.loads(text)
    for metadata in (answer.get("expect", {}).get("metadata") or {}, *(o.get("metadata") or {} for o in answer.get("objects", ()))):
        if (metadata.get("annotations") or {}).get(STEP) == "":
            del metadata["annotations"][STEP]
            metadata["annotations"] = metadata["annotations"] or None
    return answer
