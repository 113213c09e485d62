"""Jobs and CronJobs: stored, defaulted, validated and shown, but never run."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins import columns, defaults
from clusterwright.apiserver.builtins.podspec import pod_spec
from clusterwright.apiserver.builtins.rows import filled
from clusterwright.apiserver.builtins.validation import immutable
from clusterwright.apiserver.encoding.printing import age
from clusterwright.apiserver.status import FieldError, invalid, not_supported, required


def default(obj: Json) -> None:
    """Set counts, modes and the defaults of Pods."""
    spec = obj.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec.update(completions=1, parallelism=1)
    _DEFAULTS(obj)
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    default_template(spec)


_DEFAULTS: Final = filled(
    {
        "spec.backoffLimit": 6,
        "spec.completionMode": "NonIndexed",
        "spec.suspend": False,
        "spec.manualSelector": False,
        "spec.podReplacementPolicy": "TerminatingOrFailed",
    }
)


def default_template(spec: Json) -> None:
    """Set the defaults of a template's Pod."""
    template = spec.get("template")
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        defaults.pod_spec(template.setdefault("spec", {}))


def on_create(obj: Json) -> None:
    """Set the selector of a Job to its own UID, unless it is manual."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    uid = {"batch.kubernetes.io/controller-uid": meta["uid"]}
    names = {"batch.kubernetes.io/job-name": meta["name"], "controller-uid": meta["uid"], "job-name": meta["name"]}
    template["labels"] = {**(template.get("labels") or {}), **uid, **names}
    if not meta.get("labels"):
        meta["labels"] = dict(template["labels"])
    spec["selector"] = {"matchLabels": uid}


_COUNTED: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex",
    "maxFailedIndexes",
)  # fmt: skip


def validate(obj: Json, path: str = "spec") -> list[FieldError]:
    """Check counts and the Pod; `path` is that of the spec, which differs in a CronJob."""
    job = obj.get("spec") or {}
    errors = [invalid(f"{path}.{f}", job[f], "must be greater than or equal to 0") for f in _COUNTED if (job.get(f) or 0) < 0]
    spec = (job.get("template") or {}).get("spec") or {}
    where = f"{path}.template.spec"
    errors.extend(pod_spec(spec, where))
    policy = spec.get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        errors.append(
            required(f"{where}.restartPolicy", 'valid values: "OnFailure", "Never"')
            if not policy or policy == "Always"
            else not_supported(f"{where}.restartPolicy", policy, ["OnFailure", "Never"])
        )
    return errors


def validate_update(obj: Json, old: Json) -> list[FieldError]:
    """Return changes of the immutable fields of a Job."""
    new, before = obj.get("spec") or {}, old.get("spec") or {}
    fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"] + ([] if before.get("suspend") else ["template"])
    if new.get("completionMode") != "Indexed" or new.get("completions") != new.get("parallelism"):  # else it is elastic
        fixed.insert(0, "completions")
    return [e for field in fixed for e in immutable(new, before, field, f"spec.{field}")]


def default_cron(obj: Json) -> None:
    """Set policies, limits and the defaults of Pods."""
    _CRON_DEFAULTS(obj)
    template = obj["spec"].get("jobTemplate")
    if isinstance(template, dict):
        default_template(template.setdefault("spec", {}))


_CRON_DEFAULTS: Final = filled(
    {
        "spec.concurrencyPolicy": "Allow",
        "spec.suspend": False,
        "spec.successfulJobsHistoryLimit": 3,
        "spec.failedJobsHistoryLimit": 1,
    }
)


def validate_cron(obj: Json) -> list[FieldError]:
    """Check the schedule and the Job."""
    spec = obj.get("spec") or {}
    errors = [] if spec.get("schedule") else [required("spec.schedule")]
    return errors + validate(spec.get("jobTemplate") or {}, "spec.jobTemplate.spec")


def _cells(obj: Json, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    kinds = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    state = next((k for k in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet") if k in kinds), "Running")
    wanted = spec.get("completions") if spec.get("completions") is not None else spec.get("parallelism")
    begin, end = status.get("startTime"), status.get("completionTime")
    duration = "" if not begin else age(begin, datetime.fromisoformat(end)) if end else age(begin, now)
    done = f"{status.get('succeeded') or 0}/{wanted if wanted is not None else 1}"
    return [obj["metadata"].get("name", ""), state, done, duration, columns.cell_age(obj, now), *columns.template_cells(obj)]


TABLE: Final[columns.Table] = (
    (*(columns.column(n) for n in ("Status", "Completions", "Duration")), columns.AGE, *columns.WIDE),
    _cells,
)
