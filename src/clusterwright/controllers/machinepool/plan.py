"""The effect of bootstrap config, infrastructure and Nodes on a MachinePool. Pure.

Each table decides one phase of a pass: the deprecated condition, the values to copy, the requeue, and whether the pass ends in an error.
All phases run, even after a failure of another.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import MachinePool, MachinePoolInitializationStatus
from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.external import with_owner
from clusterwright.controllers.kit.adopt import owned_metadata, owner_reference
from clusterwright.controllers.kit.conditions import with_v1beta1_status
from clusterwright.controllers.kit.contract import data_secret_name, mirrored_ready, read_error, read_or_none, repeated_failure
from clusterwright.controllers.kit.lookup import Lookup
from clusterwright.controllers.machinepool import guards as g
from clusterwright.controllers.machinepool.nodes import Membership
from clusterwright.controllers.machinepool.snapshot import ClusterFacts, PoolDone, PoolSnapshot, infrastructure_replicas, provider_ids
from clusterwright.tables import KEEP, OTHERWISE, Outcome, Row, Table, Transition, computed, false, true

REPLICAS_RETRY = timedelta(seconds=30)
"""The interval of checks while Nodes are not ready; a Node that becomes ready requeues the pool sooner."""


class Copy(Enum):
    """The values that the pool copies."""

    SECRET_MISSING = "status.initialization.bootstrapDataSecretCreated is false"  # noqa: S105
    SECRET_GIVEN = "status.initialization.bootstrapDataSecretCreated is true"  # noqa: S105
    SECRET = "dataSecretName of the config, status.initialization.bootstrapDataSecretCreated is true"  # noqa: S105
    LOST = "status.deprecated.v1beta1.failureReason and failureMessage"
    PROVISIONED = "status.initialization.infrastructureProvisioned as the infrastructure says it"
    PROVIDER_IDS = "spec.providerIDList; the deprecated counters start again"


class Refs(Enum):
    """The action on the Nodes."""

    KEEP = "the references are right"
    LOOK = "delete retired Nodes, find and mark those of spec.providerIDList"


class Deletion(Enum):
    """The next step of a deletion."""

    WAIT = "nothing, before both are known"
    EXTERNAL = "delete the bootstrap config and the infrastructure, and wait"
    NODES = "delete the Nodes that left spec.providerIDList, then remove the finalizer"
    RELEASE = "remove the finalizer"


# ------------------------------------------------------------------------------------------------------------ ownership


def with_owner_and_label(pool: MachinePool, cluster: ClusterFacts) -> MachinePool:
    """Return the pool with the label and owner reference of its Cluster, so that both are deleted together."""
    metadata = pool.metadata
    owners = with_owner(metadata.owner_references, cluster.reference)
    labels = {**metadata.labels, CLUSTER_NAME_LABEL: pool.spec.cluster_name}
    return replace(pool, metadata=replace(metadata, labels=labels, owner_references=owners))


def adoption(pool: MachinePool, found: Unstructured) -> Json | None:
    """Return the patch that makes the pool the owner of a provider's object; None if it is. Raises AlreadyControlled."""
    return owned_metadata(found, owner_reference(pool, controller=True), {CLUSTER_NAME_LABEL: pool.spec.cluster_name})


# ------------------------------------------------------------------------------------------------------------- mirrors


def _mirror_config(s: PoolSnapshot) -> Outcome:
    return mirrored_ready(s.bootstrap, holds=g.config_says_created(s), waiting="WaitingForDataSecret")


def _mirror_infra(s: PoolSnapshot) -> Outcome:
    return mirrored_ready(s.infrastructure, holds=g.infra_says_provisioned(s), waiting="WaitingForInfrastructure")


_TRUE: Transition[PoolSnapshot] = true("")
_TEXT = "Ready of the object; not reported: by the contract's flag"
_CONFIG: Transition[PoolSnapshot] = computed(_mirror_config, status="mirrored", reason="", message=_TEXT)
_INFRA: Transition[PoolSnapshot] = computed(_mirror_infra, status="mirrored", reason="", message=_TEXT)


# -------------------------------------------------------------------------------------------------------------- tables

_CONFIG_FACTS = (
    # what was not read says nothing
    g.config_found | (g.config_failure_valid & g.config_flag_valid & ~g.config_deleting & ~g.config_says_created & ~g.config_names_secret),
    g.config_flag_valid | ~g.config_says_created,
)
_INFRA_FACTS = (g.infra_found | (g.infra_failure_valid & g.infra_flag_valid & ~g.infra_deleting),)

# fmt: off
BOOTSTRAP: Table[PoolSnapshot] = Table(
    "BootstrapReady (v1beta1)",
    Row("given",            g.no_config_ref & g.secret_given,           _TRUE,    act=Copy.SECRET_GIVEN),
    Row("neither",          g.no_config_ref,                            KEEP,     error=g.no_bootstrap),
    Row("missing",          g.config_missing,                           KEEP,     error=g.config_gone),
    Row("unreadable",       g.config_unreadable,                        KEEP,     error=g.config_error),
    Row("failure-garbled",  ~g.config_failure_valid,                    KEEP,     error=g.config_garbled),
    Row("config-deleting",  g.config_deleting,                          KEEP),
    Row("garbled",          ~g.config_flag_valid,                       KEEP,     error=g.config_garbled),
    Row("waiting",          ~g.config_says_created,                     _CONFIG,  act=Copy.SECRET_MISSING),
    Row("nameless",         ~g.config_names_secret,                     _CONFIG,  error=g.config_nameless),
    Row("created",          OTHERWISE,                                  _CONFIG,  act=Copy.SECRET),
    v1beta1="BootstrapReady",
    exactly_one=[(g.no_config_ref, g.config_found, g.config_unreadable, g.config_missing)],
    assuming=_CONFIG_FACTS,
    about="The name of the secret is copied whenever it changes; a config that is no longer ready is reported.",
)

INFRASTRUCTURE: Table[PoolSnapshot] = Table(
    "InfrastructureReady (v1beta1)",
    Row("lost",             g.infra_missing & g.provisioned,            false("IncorrectExternalRef", g.infra_reference_gone, "Error"), act=Copy.LOST, error=g.infra_gone),
    Row("missing",          g.infra_missing,                            false("IncorrectExternalRef", g.infra_reference_gone, "Error"), error=g.infra_gone),
    Row("unreadable",       g.infra_unreadable,                         KEEP,     error=g.infra_error),
    Row("failure-garbled",  ~g.infra_failure_valid,                     KEEP,     error=g.infra_garbled),
    Row("infra-deleting",   g.infra_deleting,                           KEEP),
    Row("garbled",          ~g.infra_flag_valid,                        KEEP,     error=g.infra_garbled),
    Row("read",             OTHERWISE,                                  _INFRA,   act=Copy.PROVISIONED),
    v1beta1="InfrastructureReady",
    exactly_one=[(g.infra_found, g.infra_unreadable, g.infra_missing)],
    assuming=_INFRA_FACTS,
    about="The flag follows the infrastructure, in both directions.",
)

SIZE: Table[PoolSnapshot] = Table(
    "ProviderIDList",
    Row("garbled",          ~g.infra_size_valid,                        KEEP,     error=g.infra_size_garbled),
    Row("not-listed-yet",   ~g.infra_lists_ids & g.infra_has_machines,  KEEP),
    Row("listed",           OTHERWISE,                                  KEEP,     act=Copy.PROVIDER_IDS),
    assuming=[~g.infra_lists_ids | g.infra_size_valid],
    about="For an infrastructure pool that is provisioned.",
)

NODE_REFS: Table[PoolDone] = Table(
    "NodeRefs",
    Row("settled",          g.settled,                                  KEEP,     act=Refs.KEEP),
    Row("no-ids",           g.no_ids & ~g.wants_none,                   KEEP),
    Row("unsettled",        OTHERWISE,                                  KEEP,     act=Refs.LOOK),
    about="Once all Nodes were ready, their readiness is not looked at again until the pool or its Nodes change.",
)

REPLICAS_READY: Table[PoolSnapshot] = Table(
    "ReplicasReady (v1beta1)",
    Row("waiting",          ~g.all_ready,                               false("WaitingForReplicasReady", "", "Info"), requeue=REPLICAS_RETRY),
    Row("ready",            OTHERWISE,                                  _TRUE),
    v1beta1="ReplicasReady",
    about="Evaluated after the Nodes were found, or if there are none to find.",
)

DELETION: Table[PoolSnapshot] = Table(
    "Deletion",
    Row("unreadable",       g.config_unreadable | g.infra_unreadable,   KEEP,     error=g.deletion_error, act=Deletion.WAIT),
    Row("external",         g.config_found | g.infra_found,             KEEP,     act=Deletion.EXTERNAL),
    Row("timed-out",        g.node_deletion_timed_out,                  KEEP,     act=Deletion.RELEASE),
    Row("no-nodes",         g.no_refs,                                  KEEP,     act=Deletion.RELEASE),
    Row("nodes",            OTHERWISE,                                  KEEP,     act=Deletion.NODES),
    exactly_one=[(g.no_config_ref, g.config_found, g.config_unreadable, g.config_missing), (g.infra_found, g.infra_unreadable, g.infra_missing)],
    about="Machines are left to the garbage collector.",
)
# fmt: on


# --------------------------------------------------------------------------------------------------------- taking over


def copied(s: PoolSnapshot, what: Copy | None) -> MachinePool:
    """Return the pool with the copied values."""
    pool = s.object
    match what:
        case None:
            return pool
        case Copy.SECRET_MISSING:
            return _initialized(pool, bootstrap_data_secret_created=False)
        case Copy.SECRET_GIVEN:
            return _initialized(pool, bootstrap_data_secret_created=True)
        case Copy.SECRET:
            return _initialized(_with_secret(pool, read_or_none(s.bootstrap, data_secret_name)), bootstrap_data_secret_created=True)
        case Copy.LOST:
            ref = pool.spec.template.spec.infrastructure_ref
            gone = f"{ref.kind} {pool.metadata.namespace}/{ref.name}"
            text = f"MachinePool infrastructure resource {gone} has been deleted after being ready"
            return with_v1beta1_status(pool, failure_reason="InvalidConfiguration", failure_message=text)
        case Copy.PROVISIONED:
            return _initialized(pool, infrastructure_provisioned=g.infra_says_provisioned(s))
        case Copy.PROVIDER_IDS:
            return _with_provider_ids(pool, read_or_none(s.infrastructure, provider_ids))
        case never:
            assert_never(never)


def _initialized(pool: MachinePool, **flags: bool) -> MachinePool:
    flags_after = replace(pool.status.initialization or MachinePoolInitializationStatus(), **flags)
    return replace(pool, status=replace(pool.status, initialization=flags_after))


def _with_secret(pool: MachinePool, name: str | None) -> MachinePool:
    template = pool.spec.template
    spec = replace(template.spec, bootstrap=replace(template.spec.bootstrap, data_secret_name=name))
    return replace(pool, spec=replace(pool.spec, template=replace(template, spec=spec)))


def _with_provider_ids(pool: MachinePool, ids: tuple[str, ...] | None) -> MachinePool:
    if (ids or ()) == pool.spec.provider_id_list:
        return pool
    pool = replace(pool, spec=replace(pool.spec, provider_id_list=ids or ()))
    return with_v1beta1_status(pool, ready_replicas=0, available_replicas=0, unavailable_replicas=pool.status.replicas or 0)


def with_replicas(s: PoolSnapshot) -> MachinePool:
    """Return the pool with the infrastructure's replicas; an unreported number keeps the old one, an unreadable one is at least known."""
    if read_error(s.infrastructure, provider_ids):
        return s.object
    garbled = read_error(s.infrastructure, infrastructure_replicas)
    replicas = s.replicas if garbled else read_or_none(s.infrastructure, infrastructure_replicas)
    return s.object if replicas is None else replace(s.object, status=replace(s.object.status, replicas=replicas))


def with_failure(pool: MachinePool, lookup: Lookup) -> MachinePool:
    """Return the pool with the terminal failure of a provider's object, if it reports one."""
    reason, message = repeated_failure(lookup)
    changes = {name: text for name, text in (("failure_reason", reason), ("failure_message", message)) if text}
    return with_v1beta1_status(pool, **changes) if changes else pool


def with_members(pool: MachinePool, found: Membership) -> MachinePool:
    """Return the pool with its Nodes, and the deprecated counters."""
    pool = replace(pool, status=replace(pool.status, node_refs=found.refs))
    unavailable = (pool.status.replicas or 0) - found.available
    return with_v1beta1_status(pool, ready_replicas=found.ready, available_replicas=found.available, unavailable_replicas=unavailable)
