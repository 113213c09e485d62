"""The answer to a claim, and whether a pool may be deleted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final

from clusterwright.api.ipam import IPAddress, IPAddressClaim
from clusterwright.api.ippools import refers_to
from clusterwright.api.ipranges import Address
from clusterwright.controllers.ipam.facts import PoolFacts
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, false, guard, message, true

RETRY: Final = timedelta(seconds=30)
"""A claim that waits for an address is woken when one is released; this is only the safety net."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSnapshot(Snapshot[IPAddressClaim]):
    """A claim with its pool and its address."""

    pool: PoolFacts | None
    """None: it does not exist."""
    pool_error: str
    """Why the pool cannot be used; empty: it can."""
    address: IPAddress | None
    """The IPAddress of the claim's name; None: it does not exist."""
    free: Address | None
    """The lowest free address of the pool, looked for only while the claim has none; None: all are in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDone(ClaimSnapshot):
    """The claim after this pass, and the reason why it got no address."""

    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSnapshot(Snapshot[Any]):
    """A pool, and the IPAddresses that were taken from it."""

    taken: tuple[IPAddress, ...]


class Answer(Enum):
    """The answer to a claim."""

    RELEASE = "delete the IPAddress and let the claim go"
    WAIT = "nothing, until the pool changes"
    KEEP = "keep the IPAddress as it must be"
    REFUSE = "fail: the IPAddress of this name is not this claim's"
    ASSIGN = "create an IPAddress with the lowest free address"


class Fate(Enum):
    """The fate of a pool."""

    STAYS = "count its addresses"
    WAITS = "keep it until no address is in use"
    GOES = "let it go"


@guard("the claim is being deleted")
def deleting(c: ClaimSnapshot) -> bool:
    return c.deleting


@guard("the pool does not exist")
def pool_gone(c: ClaimSnapshot) -> bool:
    return c.pool is None


@guard("an IPAddress of the claim's name exists")
def exists(c: ClaimSnapshot) -> bool:
    return c.address is not None


@guard("an IPAddress of the claim's name exists and names another claim or another pool")
def foreign(c: ClaimSnapshot) -> bool:
    ref = c.object.spec.pool_ref
    return c.address is not None and not (c.address.spec.claim_ref.name == c.metadata.name and refers_to(c.address, ref.kind, ref.name))


@guard("the spec of the pool cannot be used")
def unusable(c: ClaimSnapshot) -> bool:
    return bool(c.pool_error)


@guard("all addresses of the pool are in use")
def exhausted(c: ClaimSnapshot) -> bool:
    return c.free is None


@guard("the IPAddress could not be written")
def failed(c: ClaimDone) -> bool:
    return bool(c.error)


@guard("the pool is being deleted")
def pool_deleting(c: PoolSnapshot) -> bool:
    return c.deleting


@guard("addresses of the pool are in use")
def pool_used(c: PoolSnapshot) -> bool:
    return bool(c.taken)


def named(c: ClaimSnapshot) -> str:
    """Return kind and name of the pool."""
    ref = c.object.spec.pool_ref
    return f"{ref.kind} {ref.name}"


@message("<Kind> <pool> does not exist")
def pool_missing(c: ClaimSnapshot) -> str:
    return f"{named(c)} does not exist"


@message("<Kind> <pool> cannot be used: <error>")
def pool_unusable(c: ClaimSnapshot) -> str:
    return f"{named(c)} cannot be used: {c.pool_error}"


@message("All addresses of <Kind> <pool> are in use")
def none_free(c: ClaimSnapshot) -> str:
    return f"All addresses of {named(c)} are in use"


@message("IPAddress <name> exists already and belongs to another claim or pool")
def not_ours(c: ClaimSnapshot) -> str:
    return f"IPAddress {c.metadata.name} exists already and belongs to another claim or pool"


@message("<error>")
def error(c: ClaimDone) -> str:
    return c.error


CLAIM: Table[ClaimSnapshot] = Table(
    "Answer to a claim",
    Row("deleting", deleting, KEEP, act=Answer.RELEASE),
    Row("foreign", foreign, KEEP, act=Answer.REFUSE, error=not_ours),
    Row("pool-gone", pool_gone, KEEP, act=Answer.WAIT),
    Row("answered", exists, KEEP, act=Answer.KEEP),
    Row("pool-unusable", unusable, KEEP, act=Answer.WAIT),
    Row("exhausted", exhausted, KEEP, act=Answer.WAIT, requeue=RETRY),
    Row("free", OTHERWISE, KEEP, act=Answer.ASSIGN),
)

READY: Table[ClaimDone] = Table(
    "Ready",
    Row("foreign", foreign, false("AllocationFailed", not_ours), v1beta1=false("AllocationFailed", not_ours, severity="Error")),
    Row("pool-gone", pool_gone, false("PoolNotReady", pool_missing), v1beta1=false("PoolNotReady", pool_missing, severity="Error")),
    Row("failed", failed, false("AllocationFailed", error), v1beta1=false("AllocationFailed", error, severity="Error")),
    Row("answered", exists, true("Ready"), v1beta1=true("")),
    Row("pool-unusable", unusable, false("PoolNotReady", pool_unusable), v1beta1=false("PoolNotReady", pool_unusable, severity="Error")),
    Row("exhausted", exhausted, false("PoolExhausted", none_free), v1beta1=false("PoolExhausted", none_free, severity="Error")),
    Row("assigned", OTHERWISE, true("Ready"), v1beta1=true("")),
)

POOL: Table[PoolSnapshot] = Table(
    "Fate of a pool",
    Row("in-use", pool_deleting & pool_used, KEEP, act=Fate.WAITS),
    Row("deleting", pool_deleting, KEEP, act=Fate.GOES),
    Row("there", OTHERWISE, KEEP, act=Fate.STAYS),
)
