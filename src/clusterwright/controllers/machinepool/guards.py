"""The guards of the MachinePool tables, and their messages. Pure."""

from __future__ import annotations

from datetime import timedelta

from clusterwright.api.wellknown import REPLICAS_MANAGED_BY_ANNOTATION
from clusterwright.controllers.kit.contract import data_secret_created, data_secret_name, failure, read_error, read_or_none
from clusterwright.controllers.kit.lookup import Found, Lookup, Missing, NotReferenced, Unreadable, subject
from clusterwright.controllers.machinepool.nodes import still_there
from clusterwright.controllers.machinepool.snapshot import (
    PoolDone,
    PoolSnapshot,
    infrastructure_provisioned,
    infrastructure_replicas,
    provider_ids,
)
from clusterwright.tables import Subject, guard, message


def _config(s: PoolSnapshot) -> tuple[Subject, ...]:
    return subject(s.object.spec.template.spec.bootstrap.config_ref, s.object.metadata.namespace)


def _pool(s: PoolSnapshot) -> tuple[Subject, ...]:
    return subject(s.object.spec.template.spec.infrastructure_ref, s.object.metadata.namespace)


@guard("metadata.deletionTimestamp is set")
def deleting(s: PoolSnapshot) -> bool:
    return s.deleting


# -------------------------------------------------------------------------------------------------------- bootstrap config


@guard("spec.template.spec.bootstrap.configRef is not set")
def no_config_ref(s: PoolSnapshot) -> bool:
    return isinstance(s.bootstrap, NotReferenced)


@guard("the bootstrap config was read", about=_config)
def config_found(s: PoolSnapshot) -> bool:
    return isinstance(s.bootstrap, Found)


@guard("the bootstrap config could not be read", about=_config)
def config_unreadable(s: PoolSnapshot) -> bool:
    return isinstance(s.bootstrap, Unreadable)


@guard("the bootstrap config does not exist", about=_config)
def config_missing(s: PoolSnapshot) -> bool:
    return isinstance(s.bootstrap, Missing)


@guard("the failure that it reports can be read", about=_config)
def config_failure_valid(s: PoolSnapshot) -> bool:
    return not read_error(s.bootstrap, failure)


@guard("the contract's flag can be read", about=_config)
def config_flag_valid(s: PoolSnapshot) -> bool:
    return not read_error(s.bootstrap, data_secret_created)


@guard("the bootstrap config is being deleted", about=_config)
def config_deleting(s: PoolSnapshot) -> bool:
    return isinstance(s.bootstrap, Found) and s.bootstrap.deleting


@guard("the bootstrap config says that the data is there", about=_config)
def config_says_created(s: PoolSnapshot) -> bool:
    return read_or_none(s.bootstrap, data_secret_created) is True


@guard("it names the secret", about=_config)
def config_names_secret(s: PoolSnapshot) -> bool:
    return bool(read_or_none(s.bootstrap, data_secret_name))


@guard("spec.template.spec.bootstrap.dataSecretName is set")
def secret_given(s: PoolSnapshot) -> bool:
    return s.object.spec.template.spec.bootstrap.data_secret_name is not None


@message("could not find <Kind> <name> for MachinePool <name>, requeuing")
def config_gone(s: PoolSnapshot) -> str:
    ref = s.object.spec.template.spec.bootstrap.config_ref
    return _gone(s, ref.kind if ref else "", ref.name if ref else "")


@message("<the error>")
def config_error(s: PoolSnapshot) -> str:
    return _error(s.bootstrap)


@message("<what is wrong>")
def config_garbled(s: PoolSnapshot) -> str:
    return read_error(s.bootstrap, failure, data_secret_created)


@message("failed to retrieve dataSecretName from bootstrap provider for MachinePool <name> in namespace <namespace>")
def config_nameless(s: PoolSnapshot) -> str:
    return f"failed to retrieve dataSecretName from bootstrap provider for {_this(s)}: status.dataSecretName is not set"


@message("neither .spec.bootstrap.configRef nor .spec.bootstrap.dataSecretName are set for MachinePool <name> in namespace <namespace>")
def no_bootstrap(s: PoolSnapshot) -> str:
    return f"neither .spec.bootstrap.configRef nor .spec.bootstrap.dataSecretName are set for {_this(s)}"


def _this(s: PoolSnapshot) -> str:
    return f'MachinePool "{s.object.metadata.name}" in namespace "{s.object.metadata.namespace}"'


def _gone(s: PoolSnapshot, kind: str, name: str) -> str:
    return f"could not find {kind} {s.object.metadata.namespace}/{name} for MachinePool {s.object.key}, requeuing"


def _error(lookup: Lookup) -> str:
    return lookup.error if isinstance(lookup, Unreadable) else ""


# ---------------------------------------------------------------------------------------------------------- infrastructure


@guard("the infrastructure pool was read", about=_pool)
def infra_found(s: PoolSnapshot) -> bool:
    return isinstance(s.infrastructure, Found)


@guard("the infrastructure pool could not be read", about=_pool)
def infra_unreadable(s: PoolSnapshot) -> bool:
    return isinstance(s.infrastructure, Unreadable)


@guard("the infrastructure pool does not exist", about=_pool)
def infra_missing(s: PoolSnapshot) -> bool:
    return isinstance(s.infrastructure, Missing | NotReferenced)


@guard("the failure that it reports can be read", about=_pool)
def infra_failure_valid(s: PoolSnapshot) -> bool:
    return not read_error(s.infrastructure, failure)


@guard("the contract's flag can be read", about=_pool)
def infra_flag_valid(s: PoolSnapshot) -> bool:
    return not read_error(s.infrastructure, infrastructure_provisioned)


@guard("the infrastructure pool is being deleted", about=_pool)
def infra_deleting(s: PoolSnapshot) -> bool:
    return isinstance(s.infrastructure, Found) and s.infrastructure.deleting


@guard("the infrastructure pool says that it is provisioned", about=_pool)
def infra_says_provisioned(s: PoolSnapshot) -> bool:
    return read_or_none(s.infrastructure, infrastructure_provisioned) is True


@guard("status.initialization.infrastructureProvisioned")
def provisioned(s: PoolSnapshot) -> bool:
    return s.provisioned


@message("could not find infra reference of kind <Kind> with name <name>")
def infra_reference_gone(s: PoolSnapshot) -> str:
    ref = s.object.spec.template.spec.infrastructure_ref
    return f"could not find infra reference of kind {ref.kind} with name {ref.name}"


@message("could not find <Kind> <name> for MachinePool <name>, requeuing")
def infra_gone(s: PoolSnapshot) -> str:
    ref = s.object.spec.template.spec.infrastructure_ref
    return _gone(s, ref.kind, ref.name)


@message("<the error>")
def infra_error(s: PoolSnapshot) -> str:
    return _error(s.infrastructure)


@message("<what is wrong>")
def infra_garbled(s: PoolSnapshot) -> str:
    return read_error(s.infrastructure, failure, infrastructure_provisioned)


@guard("its status.replicas and spec.providerIDList can be read", about=_pool)
def infra_size_valid(s: PoolSnapshot) -> bool:
    return not infra_size_garbled(s)


@message("<what is wrong>")
def infra_size_garbled(s: PoolSnapshot) -> str:
    return read_error(s.infrastructure, infrastructure_replicas, provider_ids)


@guard("it lists providerIDs", about=_pool)
def infra_lists_ids(s: PoolSnapshot) -> bool:
    return infra_size_valid(s) and bool(read_or_none(s.infrastructure, provider_ids))


@guard("it has machines", about=_pool)
def infra_has_machines(s: PoolSnapshot) -> bool:
    """Return whether the infrastructure has machines, by the `status.replicas` copied before."""
    return s.replicas != 0


# ------------------------------------------------------------------------------------------------------------------- nodes


@guard("status.replicas, ready Nodes and nodeRefs are as many, and every Node is still the same")
def settled(s: PoolDone) -> bool:
    refs = s.object.status.node_refs
    return s.nodes is not None and s.replicas == s.ready_replicas == len(refs) and still_there(refs, s.nodes)


@guard("spec.providerIDList is empty")
def no_ids(s: PoolSnapshot) -> bool:
    return not s.object.spec.provider_id_list


@guard("spec.replicas is 0")
def wants_none(s: PoolSnapshot) -> bool:
    return s.object.spec.replicas == 0


@guard("status.replicas, ready Nodes and nodeRefs are as many")
def all_ready(s: PoolSnapshot) -> bool:
    return s.replicas == s.ready_replicas == len(s.object.status.node_refs)


@guard("status.nodeRefs is empty")
def no_refs(s: PoolSnapshot) -> bool:
    return not s.object.status.node_refs


# ----------------------------------------------------------------------------------------------------------------- phase


@guard("bootstrap data was created")
def secret_created(s: PoolSnapshot) -> bool:
    return s.data_secret_created


@guard("spec.replicas is set")
def replicas_set(s: PoolSnapshot) -> bool:
    return s.object.spec.replicas is not None


@guard("fewer replicas are ready than are wanted")
def too_few(s: PoolSnapshot) -> bool:
    return (s.object.spec.replicas or 0) > s.ready_replicas


@guard("more replicas are ready than are wanted")
def too_many(s: PoolSnapshot) -> bool:
    return (s.object.spec.replicas or 0) < s.ready_replicas


@guard("annotation cluster.x-k8s.io/replicas-managed-by is there, and not false")
def managed_elsewhere(s: PoolSnapshot) -> bool:
    return s.object.metadata.annotations.get(REPLICAS_MANAGED_BY_ANNOTATION, "false") != "false"


@guard("status.phase is set")
def phase_set(s: PoolSnapshot) -> bool:
    return bool(s.object.status.phase)


# -------------------------------------------------------------------------------------------------------------- deletion


@guard("spec.template.spec.deletion.nodeDeletionTimeoutSeconds has passed since the deletion")
def node_deletion_timed_out(s: PoolSnapshot) -> bool:
    deletion, since = s.object.spec.template.spec.deletion, s.object.metadata.deletion_timestamp
    seconds = deletion.node_deletion_timeout_seconds if deletion else None
    return bool(seconds) and since is not None and since + timedelta(seconds=seconds or 0) < s.now


@message("failed deleting external references: <the error>")
def deletion_error(s: PoolSnapshot) -> str:
    return f"failed deleting external references: {_error(s.bootstrap) or _error(s.infrastructure)}"
