"""The effect of bootstrap config, infrastructure machine and Node on a Machine, and on its v1beta1 conditions. Pure.

Each table decides one phase of a pass: the v1beta1 condition, the values to copy (`act`), the requeue, and whether the pass ends in an
error. All phases run, even after a failure of another.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any, assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineNodeReference
from clusterwright.controllers.kit.contract import (
    data_secret_created,
    data_secret_name,
    mirrored_ready,
    read_error,
    read_or_none,
    repeated_failure,
)
from clusterwright.controllers.kit.lookup import Found, Lookup, Unreadable
from clusterwright.controllers.machine.guards import (
    config_found,
    config_missing,
    config_unreadable,
    deleting,
    infra_found,
    infra_missing,
    infra_unreadable,
    no_config_ref,
    node_found,
    node_missing,
    node_ref,
    node_unreadable,
    out_of_reach,
    provider_id,
    provisioned,
    the_config,
    the_infrastructure,
)
from clusterwright.controllers.machine.infrastructure import addresses_of, failure_domains, infrastructure_provisioned, reported_provider_id
from clusterwright.controllers.machine.node import node_health_v1beta1
from clusterwright.controllers.machine.snapshot import MachineDone, MachineSnapshot, NodeFound, NodeOutOfReach, NodeUnreadable
from clusterwright.controllers.machine.status import failed, initialized, with_spec, with_status
from clusterwright.tables import KEEP, OTHERWISE, Outcome, Row, Table, Transition, computed, false, guard, message, true, unknown

EXTERNAL_RETRY = timedelta(seconds=30)
"""The interval of looking for a missing referenced object: its owner cannot watch anything yet."""


class Copy(Enum):
    """The values that a Machine copies, in memory."""

    BOOTSTRAP_FLAG = "status.initialization.bootstrapDataSecretCreated"
    BOOTSTRAP_DATA = "spec.bootstrap.dataSecretName, status.initialization.bootstrapDataSecretCreated"
    INFRASTRUCTURE = "addresses, failure domains, spec.providerID, infrastructureProvisioned"
    FAILURE = "status.deprecated.v1beta1.failureReason and failureMessage"
    NODE = "status.nodeRef, if it is empty; status.nodeInfo"


def with_failure(machine: Machine, lookup: Lookup) -> Machine:
    """Return the Machine with the terminal failure of a provider's object, if it reports one."""
    reason, message = repeated_failure(lookup)
    return failed(machine, reason=reason, message=message)


def _error_of(lookup: Any) -> str:
    if isinstance(lookup, Unreadable):
        return lookup.error
    if isinstance(lookup, NodeUnreadable | NodeOutOfReach):
        return str(lookup.error) or type(lookup.error).__name__
    return ""


def _waiting(s: MachineSnapshot, reason: str) -> str:
    """Return why an object is missing; nothing is waited for while the Machine is being deleted."""
    return "Deleting" if s.deleting else reason


def _is_deleting(lookup: Lookup) -> bool:
    return isinstance(lookup, Found) and lookup.deleting


_V1BETA1_TRUE: Transition[MachineSnapshot] = true("")


# ------------------------------------------------------------------------------------------------------------ bootstrap


@guard("spec.bootstrap.dataSecretName is set")
def secret_name_set(s: MachineSnapshot) -> bool:
    return s.machine.spec.bootstrap.data_secret_name is not None


@guard("the contract's flag can be read", about=the_config)
def config_flag_valid(s: MachineSnapshot) -> bool:
    return not read_error(s.bootstrap, data_secret_created)


@guard("the bootstrap config is being deleted", about=the_config)
def config_deleting(s: MachineSnapshot) -> bool:
    return _is_deleting(s.bootstrap)


@guard("the bootstrap config says that the data is there", about=the_config)
def config_says_created(s: MachineSnapshot) -> bool:
    return read_or_none(s.bootstrap, data_secret_created) is True


@guard("it names the secret", about=the_config)
def config_names_secret(s: MachineSnapshot) -> bool:
    return bool(read_or_none(s.bootstrap, data_secret_name))


@message("<the error>")
def config_error(s: MachineSnapshot) -> str:
    return _error_of(s.bootstrap)


@message("<what is wrong>")
def config_garbled(s: MachineSnapshot) -> str:
    return read_error(s.bootstrap, data_secret_created)


@message("<Kind> <name> says that the data was created, but status.dataSecretName is empty")
def config_nameless(s: MachineSnapshot) -> str:
    name = s.bootstrap.object.key if isinstance(s.bootstrap, Found) else ""
    return f"{s.bootstrap_kind} {name} says that the data was created, but status.dataSecretName is empty"


def _mirror_config(s: MachineSnapshot) -> Outcome:
    return mirrored_ready(s.bootstrap, holds=config_says_created(s), waiting=_waiting(s, "WaitingForDataSecret"))


def _take_secret(s: MachineSnapshot) -> Machine:
    if not isinstance(s.bootstrap, Found):
        return s.machine
    bootstrap = replace(s.machine.spec.bootstrap, data_secret_name=data_secret_name(s.bootstrap))
    machine = with_spec(s.machine, bootstrap=bootstrap)
    return initialized(machine, bootstrap_data_secret_created=True)


_MIRROR_CONFIG: Transition[MachineSnapshot] = computed(
    _mirror_config, status="mirrored", reason="", message="Ready of the object; not reported: by the contract's flag"
)

# fmt: off
BOOTSTRAP: Table[MachineSnapshot] = Table(
    "BootstrapReady (v1beta1)",
    Row("not-referenced",   no_config_ref,                                 KEEP),
    Row("missing-deleting", config_missing & deleting,                     KEEP),
    Row("missing",          config_missing,                                KEEP,           requeue=EXTERNAL_RETRY),
    Row("unreadable",       config_unreadable,                             KEEP,           error=config_error),
    Row("taken-before",     secret_name_set,                               _V1BETA1_TRUE,  act=Copy.BOOTSTRAP_FLAG),
    Row("garbled",          ~config_flag_valid,                            KEEP,           error=config_garbled),
    Row("config-deleting",  config_deleting,                               _MIRROR_CONFIG),
    Row("waiting",          ~config_says_created,                          _MIRROR_CONFIG),
    Row("nameless",         ~config_names_secret,                          _MIRROR_CONFIG, error=config_nameless),
    Row("created",          OTHERWISE,                                     _MIRROR_CONFIG, act=Copy.BOOTSTRAP_DATA),
    v1beta1="BootstrapReady",
    exactly_one=[(no_config_ref, config_found, config_unreadable, config_missing)],
    about="The first secret name that the bootstrap config reports is kept permanently.",
)
# fmt: on


# ------------------------------------------------------------------------------------------------------- infrastructure


@guard("the contract's flag can be read", about=the_infrastructure)
def infra_flag_valid(s: MachineSnapshot) -> bool:
    return not read_error(s.infrastructure, infrastructure_provisioned)


@guard("the infrastructure machine is being deleted", about=the_infrastructure)
def infra_deleting(s: MachineSnapshot) -> bool:
    return _is_deleting(s.infrastructure)


@guard("the infrastructure machine says that it is provisioned", about=the_infrastructure)
def infra_says_provisioned(s: MachineSnapshot) -> bool:
    return read_or_none(s.infrastructure, infrastructure_provisioned) is True


@guard("it reports spec.providerID", about=the_infrastructure)
def infra_reports_provider_id(s: MachineSnapshot) -> bool:
    return bool(read_or_none(s.infrastructure, reported_provider_id))


@guard("its addresses and failure domains can be read", about=the_infrastructure)
def infra_details_valid(s: MachineSnapshot) -> bool:
    return not infra_details_garbled(s)


@message("<the error>")
def infra_error(s: MachineSnapshot) -> str:
    return _error_of(s.infrastructure)


@message("<what is wrong>")
def infra_garbled(s: MachineSnapshot) -> str:
    return read_error(s.infrastructure, infrastructure_provisioned)


@message("<what is wrong>")
def infra_details_garbled(s: MachineSnapshot) -> str:
    return read_error(s.infrastructure, addresses_of, failure_domains)


@message("<Kind> <name> of Machine <name> is gone")
def infra_gone(s: MachineSnapshot) -> str:
    return f"could not find {s.infrastructure_kind} {_infra_name(s)} for Machine {s.machine.key}"


def _infra_name(s: MachineSnapshot) -> str:
    return f"{s.machine.metadata.namespace}/{s.machine.spec.infrastructure_ref.name}"


def _mirror_infra(s: MachineSnapshot) -> Outcome:
    return mirrored_ready(s.infrastructure, holds=infra_says_provisioned(s), waiting=_waiting(s, "WaitingForInfrastructure"))


def _fail(s: MachineSnapshot) -> Machine:
    text = f"Machine infrastructure resource {s.infrastructure_kind} {_infra_name(s)} has been deleted after provisioning was completed"
    return failed(s.machine, reason="InvalidConfiguration", message=text)


def _take_over(s: MachineSnapshot) -> Machine:
    if not isinstance(s.infrastructure, Found):
        return s.machine
    infra, machine = s.infrastructure, s.machine
    if (addresses := addresses_of(infra)) is not None:
        machine = with_status(machine, addresses=addresses)
    requested, actual = failure_domains(infra)
    if requested:
        machine = with_spec(machine, failure_domain=requested)
    if actual:
        machine = with_status(machine, failure_domain=actual)
    machine = with_spec(machine, provider_id=reported_provider_id(infra))
    return initialized(machine, infrastructure_provisioned=True)


_MIRROR_INFRA: Transition[MachineSnapshot] = computed(
    _mirror_infra, status="mirrored", reason="", message="Ready of the object; not reported: by the contract's flag"
)

# fmt: off
INFRASTRUCTURE: Table[MachineSnapshot] = Table(
    "InfrastructureReady (v1beta1)",
    Row("missing-deleting", infra_missing & deleting,                  KEEP),
    Row("lost",             infra_missing & provisioned,               KEEP,          act=Copy.FAILURE, error=infra_gone),
    Row("missing",          infra_missing,                             KEEP,          requeue=EXTERNAL_RETRY),
    Row("unreadable",       infra_unreadable,                          KEEP,          error=infra_error),
    Row("garbled",          ~infra_flag_valid,                         KEEP,          error=infra_garbled),
    Row("infra-deleting",   infra_deleting,                            _MIRROR_INFRA),
    Row("waiting",          ~infra_says_provisioned & ~provisioned,    _MIRROR_INFRA),
    Row("no-provider-id",   ~infra_reports_provider_id,                _MIRROR_INFRA),
    Row("details-garbled",  ~infra_details_valid,                      _MIRROR_INFRA, error=infra_details_garbled),
    Row("provisioned",      OTHERWISE,                                 _MIRROR_INFRA, act=Copy.INFRASTRUCTURE),
    v1beta1="InfrastructureReady",
    exactly_one=[(infra_found, infra_unreadable, infra_missing)],
    about="Copied values are refreshed forever; a provisioned Machine stays provisioned.",
)
# fmt: on


# ----------------------------------------------------------------------------------------------------------------- Node


@guard("the Node was brought in line")
def node_synced(s: MachineDone) -> bool:
    return not isinstance(s.node, NodeFound) or s.node.sync_error is None


@guard("the infrastructure machine is there to stay", about=the_infrastructure)
def infra_stays(s: MachineSnapshot) -> bool:
    return isinstance(s.infrastructure, Found) and not _is_deleting(s.infrastructure)


@message("<the error>")
def node_error(s: MachineDone) -> str:
    return _error_of(s.node)


@message("<the error>")
def node_sync_error(s: MachineDone) -> str:
    error = s.node.sync_error if isinstance(s.node, NodeFound) else None
    return "" if error is None else str(error) or type(error).__name__


@message("no Node matches the providerID of Machine <name>")
def no_matching_node(s: MachineSnapshot) -> str:
    return f"no Node matches the providerID of Machine {s.machine.key}"


def _judge_node(s: MachineDone) -> Outcome:
    if not isinstance(s.node, NodeFound):
        return Outcome("Unknown", "NodeInspectionFailed")
    health = node_health_v1beta1(s.node.node)
    match health.status:
        case "True":
            return Outcome("True", "")
        case "False":
            return Outcome("False", "NodeConditionsFailed", health.message, "Warning")
        case _:
            return Outcome("Unknown", "NodeConditionsFailed", health.message)


def _copy_node(s: MachineDone) -> Machine:
    if not isinstance(s.node, NodeFound):
        return s.machine
    machine, node = s.machine, s.node.node
    if machine.status.node_ref is None:
        machine = with_status(machine, node_ref=MachineNodeReference(name=node.metadata.name))
    return with_status(machine, node_info=node.status.node_info)


_HEALTH: Transition[MachineDone] = computed(
    _judge_node, status="from the Node", reason="NodeConditionsFailed", message="Node condition <type> is <status>"
)

# fmt: off
NODE: Table[MachineDone] = Table(
    "NodeHealthy (v1beta1)",
    Row("out-of-reach",     out_of_reach,                           KEEP, error=node_error),
    Row("no-provider-id",   ~provider_id,                           false("WaitingForNodeRef", severity="Info")),
    Row("unreadable",       node_unreadable,                        unknown("NodeInspectionFailed", "Failed to get the Node for this Machine by ProviderID"), error=node_error),
    Row("missing-deleting", node_missing & deleting,                KEEP),
    Row("lost",             node_missing & node_ref,                false("NodeNotFound", severity="Error"), error=no_matching_node),
    Row("provisioning",     node_missing,                           false("NodeProvisioning", "Waiting for a node with matching ProviderID to exist", "Warning")),
    Row("unsynced",         ~node_synced,                           KEEP, act=Copy.NODE, error=node_sync_error),
    Row("infra-going",      ~infra_stays,                           false("Deleting", severity="Info"), act=Copy.NODE),
    Row("judged",           OTHERWISE,                              _HEALTH, act=Copy.NODE),
    v1beta1="NodeHealthy",
    exactly_one=[(out_of_reach, node_unreadable, node_found, node_missing)],
)
# fmt: on

TABLES = (BOOTSTRAP, INFRASTRUCTURE, NODE)


def copied(s: MachineDone, what: Copy | None) -> Machine:
    """Return the Machine with the copied values."""
    match what:
        case None:
            return s.machine
        case Copy.BOOTSTRAP_FLAG:
            return initialized(s.machine, bootstrap_data_secret_created=True)
        case Copy.BOOTSTRAP_DATA:
            return _take_secret(s)
        case Copy.FAILURE:
            return _fail(s)
        case Copy.INFRASTRUCTURE:
            return _take_over(s)
        case Copy.NODE:
            return _copy_node(s)
        case never:
            assert_never(never)
