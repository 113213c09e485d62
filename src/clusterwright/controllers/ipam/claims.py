"""The steps of a pass over a claim: find its pool, and give it the lowest free address."""

from __future__ import annotations

from contextlib import suppress
from typing import assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.ipam import IPAddress, IPAddressClaim, IPAddressClaimReference, IPAddressReference, IPAddressSpec
from clusterwright.api.ippools import GROUP, POOLS, in_use, refers_to
from clusterwright.api.ipranges import Address
from clusterwright.api.meta import ObjectKey, ObjectMeta, OwnerReference
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.ipam.facts import (
    PROTECT_ADDRESS_FINALIZER,
    RELEASE_ADDRESS_FINALIZER,
    BadPool,
    ClusterPause,
    PoolFacts,
    assignable,
)
from clusterwright.controllers.ipam.plan import CLAIM, READY, Answer, ClaimDone, ClaimSnapshot
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import with_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import is_paused
from clusterwright.runtime.reconcile import Reconciler

SHAPE = Shape(
    kind=IPAddressClaim,
    finalizer=RELEASE_ADDRESS_FINALIZER,
    owned=(READY.name,),
    owned_v1beta1=(READY.name,),
    done=ClaimDone,
    main=False,
)
_KINDS = {kind.__name__: kind for kind in POOLS}

ClaimPass = Pass[IPAddressClaim, ClaimSnapshot, ClaimDone]


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of claims."""
    return KindReconciler(deps, SHAPE, Claims(deps))


def is_ours(claim: IPAddressClaim) -> bool:
    """Return whether the claim names one of our pools."""
    ref = claim.spec.pool_ref
    return ref.api_group == GROUP and ref.kind in _KINDS


def cluster_name(claim: IPAddressClaim) -> str:
    """Return the name of the Cluster that a claim is for; empty: of none."""
    return claim.spec.cluster_name or claim.metadata.labels.get(CLUSTER_NAME_LABEL, "")


class Claims(Kind[IPAddressClaim, Unowned | ClusterPause, ClaimSnapshot, ClaimDone]):
    """The reconciler of claims."""

    def __init__(self, deps: Dependencies) -> None:
        self._client = deps.client
        self._clock = deps.clock
        self._patcher = Patcher(deps.client, deps.clock, deps.random)

    def concerns(self, obj: IPAddressClaim) -> bool:
        """Return whether the claim names one of our pools."""
        return is_ours(obj)

    async def owner(self, obj: IPAddressClaim) -> Unowned | ClusterPause | None:
        """Return whether the claim or its Cluster is paused. A Cluster that is not there yet is waited for, unless the claim goes."""
        if is_paused(obj, cluster_paused=False):
            return Unowned(paused=True)
        name = cluster_name(obj)
        if not name:
            return Unowned()
        cluster = await self._client.find(Cluster, ObjectKey(obj.metadata.namespace, name))
        if cluster is None:
            return None if obj.metadata.deletion_timestamp is None else Unowned()
        return ClusterPause.of(cluster)

    async def observe(self, obj: IPAddressClaim, owner: Unowned | ClusterPause) -> ClaimSnapshot | None:
        """Read the pool and the address; return None if the pool is paused."""
        kind = _KINDS[obj.spec.pool_ref.kind]
        namespace = obj.metadata.namespace if kind is _KINDS["InClusterIPPool"] else ""
        name = obj.spec.pool_ref.name
        found = await self._client.find(kind, ObjectKey(namespace, name))
        pool = None if found is None else PoolFacts.of(found)
        if pool is not None and pool.paused:
            return None
        address = await self._client.find(IPAddress, obj.key)
        free: Address | None = None
        problem = ""
        if pool is not None and address is None and obj.metadata.deletion_timestamp is None:
            others = await self._client.list(IPAddress, namespace=namespace)
            try:
                free = assignable(pool.spec).first_free(in_use(one for one in others if refers_to(one, kind.__name__, name)))
            except BadPool as error:
                problem = str(error)
        return ClaimSnapshot(object=obj, now=self._clock.now(), pool=pool, pool_error=problem, address=address, free=free)

    async def act(self, run: ClaimPass) -> None:
        """Answer the claim."""
        match run.decide_on(CLAIM, run.seen).chosen(Answer):
            case Answer.RELEASE:
                await self._release(run)
                run.become(without_finalizer(run.object, RELEASE_ADDRESS_FINALIZER))
            case Answer.ASSIGN:
                await self._assign(run)
            case Answer.KEEP:
                await self._keep(run)
            case Answer.WAIT | Answer.REFUSE | None:
                pass
            case never:
                assert_never(never)

    def conclude(self, run: ClaimPass) -> None:
        """Say whether the claim has its address."""
        if not run.seen.deleting:
            run.conclude(READY)

    # ------------------------------------------------------------------------------------------------ addresses

    async def _assign(self, run: ClaimPass) -> None:
        seen, pool = run.seen, run.seen.pool
        assert pool is not None
        assert seen.free is not None
        address = IPAddress(
            metadata=ObjectMeta(name=seen.metadata.name, namespace=seen.metadata.namespace),
            spec=IPAddressSpec(
                address=str(seen.free),
                claim_ref=IPAddressClaimReference(name=seen.metadata.name),
                gateway=pool.spec.gateway,
                pool_ref=seen.object.spec.pool_ref,
                prefix=pool.spec.prefix,
            ),
        )
        try:
            await self._client.create(_as_it_must_be(address, seen.object, pool.reference))
        except ApiError as error:
            self._fail(run, f"failed to create IPAddress {seen.metadata.name}: {error}", error)
            return
        self._answer(run)

    async def _keep(self, run: ClaimPass) -> None:
        seen = run.seen
        assert seen.pool is not None
        original: Original[IPAddress] | None = await self._client.read(IPAddress, seen.key)
        if original is None:
            return
        try:
            await self._patcher.patch(original, _as_it_must_be(original.object, seen.object, seen.pool.reference))
        except ApiError as error:
            self._fail(run, f"failed to patch IPAddress {seen.metadata.name}: {error}", error)
            return
        self._answer(run)

    async def _release(self, run: ClaimPass) -> None:
        original = await self._client.read(IPAddress, run.seen.key)
        if original is None or original.object.spec.claim_ref.name != run.seen.metadata.name:
            return
        await self._patcher.patch(original, without_finalizer(original.object, PROTECT_ADDRESS_FINALIZER))
        with suppress(NotFound):
            await self._client.delete(IPAddress, run.seen.key, uid=original.object.metadata.uid)

    @staticmethod
    def _answer(run: ClaimPass) -> None:
        status = run.object.status
        run.become(replace(run.object, status=replace(status, address_ref=IPAddressReference(name=run.seen.metadata.name))))

    @staticmethod
    def _fail(run: ClaimPass, text: str, cause: ApiError) -> None:
        run.done = replace(run.done, error=text)
        run.fail(text, cause)


def _as_it_must_be(address: IPAddress, claim: IPAddressClaim, pool: OwnerReference) -> IPAddress:
    """Return the address with both owners, the label of the Cluster, and protected, unless it is being deleted already."""
    metadata = address.metadata
    ours = (owner_reference(claim, controller=True), replace(pool, controller=False, block_owner_deletion=True))
    others = (o for o in metadata.owner_references if o.uid not in {one.uid for one in ours})
    label = claim.metadata.labels.get(CLUSTER_NAME_LABEL)
    labels = metadata.labels if label is None else {**metadata.labels, CLUSTER_NAME_LABEL: label}
    kept = replace(address, metadata=replace(metadata, owner_references=(*others, *ours), labels=labels))
    return kept if metadata.deletion_timestamp is not None else with_finalizer(kept, PROTECT_ADDRESS_FINALIZER)
