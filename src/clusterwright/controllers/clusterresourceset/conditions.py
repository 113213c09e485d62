"""The condition of a ClusterResourceSet: one for all Clusters; the worst outcome wins."""

from __future__ import annotations

from clusterwright.controllers.clusterresourceset.snapshot import ResourceSetDone, ResourceSetSnapshot, Trouble
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.tables import KEEP, OTHERWISE, Guard, Message, Row, Table, false, guard, message, true

NOT_APPLIED = "Failed to apply ClusterResourceSet resources to Cluster"


def _failed(*kinds: Trouble) -> Guard[ResourceSetDone]:
    @guard(f"for some Cluster, {' or '.join(k.value for k in kinds)}")
    def failed(c: ResourceSetDone) -> bool:
        return bool(c.troubles(*kinds))

    return failed


def _error(*kinds: Trouble) -> Message[ResourceSetDone]:
    @message("<error>")
    def error(c: ResourceSetDone) -> str:
        return c.troubles(*kinds)[0].text

    return error


@guard("the selector is invalid, or Clusters cannot be listed")
def match_failed(c: ResourceSetSnapshot) -> bool:
    return bool(c.match_error)


@message("<error>")
def match_error(c: ResourceSetSnapshot) -> str:
    return c.match_error


@guard("some Cluster has everything")
def applied(c: ResourceSetDone) -> bool:
    return bool(c.complete)


@message("Secret type of resource <name> is not supported")
def wrong_type(c: ResourceSetDone) -> str:
    return f"Secret type of resource {c.troubles(Trouble.SECRET_TYPE)[0].resource} is not supported"


_RETRIEVING = (Trouble.RESOURCE, Trouble.OWNERSHIP)
_APPLYING = (Trouble.CONTENT, Trouble.APPLYING)

RESOURCES_APPLIED: Table[ResourceSetDone] = Table(
    "ResourcesApplied",
    Row("match-failed", match_failed, false("InternalError", CHECK_LOGS), v1beta1=false("ClusterMatchFailed", match_error, severity="Warning")),
    Row("wrong-secret-type", _failed(Trouble.SECRET_TYPE), false("WrongSecretType", wrong_type), v1beta1=false("WrongSecretType", "unsupported secret type", severity="Warning")),
    Row("not-retrieved", _failed(*_RETRIEVING), false("InternalError", CHECK_LOGS), v1beta1=false("RetrievingResourceFailed", _error(*_RETRIEVING), severity="Warning")),
    Row("not-bound", _failed(Trouble.BINDING), false("InternalError", CHECK_LOGS), v1beta1=false("ApplyFailed", _error(Trouble.BINDING), severity="Warning")),
    Row("not-connected", _failed(Trouble.CONNECTION), false("InternalError", CHECK_LOGS), v1beta1=false("RemoteClusterClientFailed", _error(Trouble.CONNECTION), severity="Error")),
    Row("not-applied", _failed(*_APPLYING), false("NotApplied", NOT_APPLIED), v1beta1=false("ApplyFailed", _error(*_APPLYING), severity="Warning")),
    Row("applied", applied, true("Applied"), v1beta1=true("")),
    Row("no-cluster", OTHERWISE, KEEP),
)  # fmt: skip
