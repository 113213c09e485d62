"""The stages in which a container becomes a Node, as the conditions that upstream's provider sets, too. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from clusterwright import conditions
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.provider.conditions import Answered, cluster_provisioned, deleting, gone, has_data, provisioned, stopped
from clusterwright.tables import KEEP, OTHERWISE, Guard, Row, Table, false, guard, message, true


class Stage(IntEnum):
    """The stage that a machine has reached; the ones before it are over."""

    CONTAINER = 1
    SYSTEM = 2
    IMAGES = 3
    BOOTSTRAP = 4
    DONE = 5


@dataclass(frozen=True, slots=True)
class Reached:
    """The facts of a pass."""

    stage: Stage
    is_final: bool = False
    """Whether the bootstrap data failed, which is never repeated."""


def _stage(v: Answered) -> Stage | None:
    return v.facts.stage if isinstance(v.facts, Reached) else None


@guard("nothing was learnt of the container in this pass")
def unseen(v: Answered) -> bool:
    return _stage(v) is None


def _at(stage: Stage, words: str) -> Guard[Answered]:
    return Guard(words, lambda v: _stage(v) is stage)


in_container = _at(Stage.CONTAINER, "the container does not run yet")
in_system = _at(Stage.SYSTEM, "systemd is starting in the container")
in_images = _at(Stage.IMAGES, "preLoadImages are not all in the container")
in_bootstrap = _at(Stage.BOOTSTRAP, "the bootstrap data are not done")


@guard("the bootstrap data failed, and are not run again")
def bootstrap_failed(v: Answered) -> bool:
    return isinstance(v.facts, Reached) and v.facts.is_final


@guard("worker of a Cluster whose ControlPlaneInitialized is not True")
def waits_for_control_plane(v: Answered) -> bool:
    is_worker = v.machine is not None and CONTROL_PLANE_LABEL not in v.machine.metadata.labels
    initialized = conditions.get(v.cluster.status.conditions, "ControlPlaneInitialized") if v.cluster is not None else None
    return is_worker and (initialized is None or initialized.status != "True")


@message("<what the provider says>")
def said(v: Answered) -> str:
    return v.failure or v.pending or v.gone or v.stopped


_INFRASTRUCTURE, _CONTROL_PLANE = "WaitingForClusterInfrastructureReady", "WaitingForControlPlaneInitialized"

# fmt: off
CONTAINER_PROVISIONED: Table[Answered] = Table(
    "ContainerProvisioned",
    Row("deleting",                      deleting,                                                false("Deleting")),
    Row("not-running",                   gone | stopped,                                          false("NotProvisioned", said)),
    Row("cluster-infrastructure",        ~provisioned & ~cluster_provisioned,                     false(_INFRASTRUCTURE)),
    Row("control-plane-not-initialized", ~provisioned & ~has_data & waits_for_control_plane,      false(_CONTROL_PLANE)),
    Row("no-bootstrap-data",             ~provisioned & ~has_data,                                false("WaitingForBootstrapData")),
    Row("unseen",                        unseen,                                                  KEEP),
    Row("creating",                      in_container,                                            false("NotProvisioned", said)),
    Row("provisioned",                   OTHERWISE,                                               true("Provisioned")),
    about="Whether the container of a machine runs.",
)

CGROUPS_READY: Table[Answered] = Table(
    "CGroupsReady",
    Row("container", deleting | gone | stopped | unseen, KEEP),
    Row("waiting",   in_container,                       false("WaitingForContainer")),
    Row("starting",  in_system,                          false("NotReady", said)),
    Row("ready",     OTHERWISE,                          true("Ready")),
    about="Whether systemd is up in the container; until then its cgroups are not.",
)

PRE_LOADED_IMAGES_READY: Table[Answered] = Table(
    "PreLoadedImagesReady",
    Row("container", deleting | gone | stopped | unseen, KEEP),
    Row("waiting",   in_container,                       false("WaitingForContainer")),
    Row("starting",  in_system,                          false("WaitingForCGroups")),
    Row("loading",   in_images,                          false("NotReady", said)),
    Row("ready",     OTHERWISE,                          true("Ready")),
    about="Whether the images of `preLoadImages` are in the container.",
)

BOOTSTRAP_COMPLETED: Table[Answered] = Table(
    "BootstrapCompleted",
    Row("container", deleting | gone | stopped | unseen,  KEEP),
    Row("waiting",   in_container,                        false("WaitingForContainer")),
    Row("starting",  in_system,                           false("WaitingForCGroups")),
    Row("loading",   in_images,                           false("WaitingForPreloadedImages")),
    Row("failed",    in_bootstrap & bootstrap_failed,     false("Failed", said)),
    Row("running",   in_bootstrap,                        false("NotCompleted", said)),
    Row("completed", OTHERWISE,                           true("Completed")),
    about="Whether the bootstrap data ran to their end.",
)
# fmt: on

TABLES = (CONTAINER_PROVISIONED, CGROUPS_READY, PRE_LOADED_IMAGES_READY, BOOTSTRAP_COMPLETED)
