"""The conditions of a ClusterClass."""

from __future__ import annotations

from clusterwright.controllers.clusterclass.snapshot import ClusterClassDone
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.tables import OTHERWISE, Row, Table, false, guard, message, true, unknown


@guard("a template could not be read, made ours, or its contract is not known")
def references_failed(c: ClusterClassDone) -> bool:
    return bool(c.reference_errors)


@guard("a templateRef is not of the newest apiVersion of its contract")
def outdated(c: ClusterClassDone) -> bool:
    return bool(c.outdated)


@message("The following templateRefs are not using the latest apiVersion: <one line each>")
def outdated_lines(c: ClusterClassDone) -> str:
    lines = (f"\n* {o.kind} {o.name}: current: {o.current}, latest: {o.latest}" for o in c.outdated)
    return "The following templateRefs are not using the latest apiVersion:" + "".join(lines)


@guard("variables could not be discovered, are invalid, or conflict")
def variables_failed(c: ClusterClassDone) -> bool:
    return bool(c.variables_error)


@message("VariableDiscovery failed: <what failed>")
def discovery_failed(c: ClusterClassDone) -> str:
    return f"VariableDiscovery failed: {c.variables_error}"


REF_VERSIONS_UP_TO_DATE: Table[ClusterClassDone] = Table(
    "RefVersionsUpToDate",
    Row("failed", references_failed, unknown("InternalError", CHECK_LOGS), v1beta1=unknown("InternalError", CHECK_LOGS)),
    Row(
        "outdated",
        outdated,
        false("RefVersionsNotUpToDate", outdated_lines),
        v1beta1=false("OutdatedRefVersions", outdated_lines, severity="Warning"),
    ),
    Row("up-to-date", OTHERWISE, true("RefVersionsUpToDate"), v1beta1=true("")),
)

VARIABLES_READY: Table[ClusterClassDone] = Table(
    "VariablesReady",
    Row("failed", variables_failed, false("VariableDiscoveryFailed", discovery_failed)),
    Row("ready", OTHERWISE, true("VariablesReady")),
)

VARIABLES_RECONCILED: Table[ClusterClassDone] = Table(
    "VariablesReconciled (v1beta1)",
    Row("failed", variables_failed, false("VariableDiscoveryFailed", discovery_failed, severity="Error")),
    Row("ready", OTHERWISE, true("")),
    v1beta1="VariablesReconciled",
)

TABLES = (REF_VERSIONS_UP_TO_DATE, VARIABLES_READY, VARIABLES_RECONCILED)
