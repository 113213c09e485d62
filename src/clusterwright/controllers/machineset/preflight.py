"""Check whether a Machine can join now, before one is created or an unhealthy one is replaced. Pure.

A Machine that joins a control plane which is being made or upgraded, or whose version does not fit, may never become a Node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import BOOTSTRAP_GROUP, SKIP_PREFLIGHT_CHECKS_ANNOTATION
from clusterwright.kubeadm.reached import is_any_older
from clusterwright.kubeadm.versions import Version, compare, parse_version
from clusterwright.tables import KEEP, OTHERWISE, Because, Collect, Decision, Guard, Message, Row, Table, false, guard, message, true

ALL: Final = "All"
STABLE: Final = "ControlPlaneIsStable"
KUBERNETES_SKEW: Final = "KubernetesVersionSkew"
KUBEADM_SKEW: Final = "KubeadmVersionSkew"
CONTROL_PLANE_SKEW: Final = "ControlPlaneVersionSkew"
_OLDEST_MINOR: Final = 3
"""How many minor versions a kubelet may be behind."""


_NOWHERE: Final = ObjectKey("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """The facts of the control plane. Versions are None if the field is absent; `error`: it could not be read."""

    kind: str = ""
    key: ObjectKey = _NOWHERE
    version: str | None = None
    status_version: str | None = None
    status_versions: tuple[str, ...] = ()
    """The `status.versions`, oldest first; they take precedence over `status_version`, which is then the first of them."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The facts of the checks. `control_plane` is None if the Cluster refers to none."""

    version: str = ""
    """The version of new Machines; empty if unset."""
    kubeadm: bool = False
    """Whether new Machines join by kubeadm."""
    control_plane: ControlPlane | None = None
    topology_version: str | None = None
    """The version of a managed topology; None without one."""
    upgrade_step: str = ""
    is_pinned: bool = False
    """Whether the topology pins new Machines to their version, so that they do not wait for that of the topology."""
    skipped: frozenset[str] = frozenset()
    skipped_error: str = ""
    """Why the skipped checks are unknown: the MachineSet names none, and its bootstrap template cannot be read."""
    enabled: bool = True


def skipped_checks(annotation: str) -> frozenset[str]:
    """Return the checks that the annotation lists."""
    return frozenset(name for part in annotation.split(",") if (name := part.strip()))


def _parsed(text: str | None) -> Version | None:
    try:
        return parse_version(text) if text else None
    except ValueError:
        return None


def _cp(p: Preflight) -> ControlPlane:
    return p.control_plane or ControlPlane()


def _minors(p: Preflight) -> tuple[int, int]:
    """Return the minor versions of new Machines and of the control plane."""
    ours, theirs = _parsed(p.version), _parsed(_cp(p).version)
    return (ours.minor if ours else 0, theirs.minor if theirs else 0)


def is_on_the_way(spec: str | None, status: str | None) -> bool:
    """Return whether a control plane is upgrading: to a higher version, or another build of the same."""
    wanted, present = _parsed(spec), _parsed(status)
    if wanted is None or present is None:
        return False
    order = compare(wanted, present)
    return order > 0 if order else wanted.build != present.build


def _skips(name: str) -> Guard[Preflight]:
    return Guard(f"{name} is skipped", lambda p: name in p.skipped)


# ------------------------------------------------------------------------------------------------- guards


@guard("gate MachineSetPreflightChecks")
def enabled(p: Preflight) -> bool:
    return p.enabled


@guard("annotations of the bootstrap template cannot be read, and the MachineSet skips nothing")
def skipped_unknown(p: Preflight) -> bool:
    return bool(p.skipped_error)


@guard("Cluster has controlPlaneRef")
def has_control_plane(p: Preflight) -> bool:
    return p.control_plane is not None


@guard("control plane cannot be read")
def unreadable(p: Preflight) -> bool:
    return bool(_cp(p).error)


@guard("control plane has spec.version")
def versioned(p: Preflight) -> bool:
    return _cp(p).version is not None


@guard("control plane's spec.version is a version")
def version_parsable(p: Preflight) -> bool:
    return _cp(p).version is None or _parsed(_cp(p).version) is not None


@guard("a new Machine's version is a version")
def machine_version_parsable(p: Preflight) -> bool:
    return not p.version or _parsed(p.version) is not None


@guard("control plane's status.version is a version")
def status_parsable(p: Preflight) -> bool:
    return not _cp(p).status_version or _parsed(_cp(p).status_version) is not None


@guard("the topology asks for another version than the control plane's, it is not a step of an upgrade, and the workers are not pinned")
def upgrade_pending(p: Preflight) -> bool:
    version = _cp(p).version
    if p.topology_version is None or version is None or p.is_pinned:
        return False
    return version not in {p.topology_version, p.upgrade_step}


@guard("control plane has no status.version")
def provisioning(p: Preflight) -> bool:
    return not _cp(p).status_version


@guard("control plane's spec.version is above one of its status.versions; without them, above its status.version, or another build of it")
def upgrading(p: Preflight) -> bool:
    wanted = _parsed(_cp(p).version)
    if _cp(p).status_versions:
        return wanted is not None and is_any_older(_cp(p).status_versions, wanted)
    return is_on_the_way(_cp(p).version, _cp(p).status_version)


@guard("minor of the Machine > minor of the control plane")
def too_new(p: Preflight) -> bool:
    ours, theirs = _minors(p)
    return ours > theirs


@guard("minor of the Machine < minor of the control plane - 3")
def too_old(p: Preflight) -> bool:
    ours, theirs = _minors(p)
    return ours < theirs - _OLDEST_MINOR


@guard("minors differ")
def other_minor(p: Preflight) -> bool:
    ours, theirs = _minors(p)
    return ours != theirs


@guard("versions differ")
def other_version(p: Preflight) -> bool:
    return p.version != _cp(p).version


skip_all = _skips(ALL)
asks_stable: Guard[Preflight] = Guard(f"{STABLE} is asked", lambda p: STABLE not in p.skipped)
asks_skew: Guard[Preflight] = Guard(
    f"{KUBERNETES_SKEW} is asked, of a version", lambda p: bool(p.version) and KUBERNETES_SKEW not in p.skipped
)
asks_kubeadm: Guard[Preflight] = Guard(
    f"{KUBEADM_SKEW} is asked, of a version that joins by kubeadm",
    lambda p: bool(p.version) and p.kubeadm and KUBEADM_SKEW not in p.skipped,
)
asks_version: Guard[Preflight] = Guard(
    f"{CONTROL_PLANE_SKEW} is asked, of a version in a managed topology that is not pinned",
    lambda p: bool(p.version) and p.topology_version is not None and not p.is_pinned and CONTROL_PLANE_SKEW not in p.skipped,
)


# ----------------------------------------------------------------------------------------------- messages


def _failed(name: str) -> str:
    return f'("{name}" preflight check failed)'


def _stable_message(form: str) -> Message[Preflight]:
    def make(p: Preflight) -> str:
        step = p.upgrade_step or p.topology_version or ""
        return f"{_cp(p).kind} {_cp(p).key} {form.replace('<version>', step)} {_failed(STABLE)}"

    return Message(f"<Kind> <namespace/name> {form} {_failed(STABLE)}", make)


def _skew_message(policy: str, name: str) -> Message[Preflight]:
    def make(p: Preflight) -> str:
        versions = f"MachineSet version ({_parsed(p.version)}) and ControlPlane version ({_parsed(_cp(p).version)})"
        return f"{versions} do not conform to {policy} {_failed(name)}"

    return Message(f"MachineSet version (<X>) and ControlPlane version (<Y>) do not conform to {policy} {_failed(name)}", make)


KUBERNETES_POLICY: Final = "the kubernetes version skew policy as MachineSet version is"
KUBEADM_POLICY: Final = (
    "kubeadm version skew policy as kubeadm only supports joining with the same major+minor version as the control plane"
)


@message(
    "MachineSet version (<X>) is not yet the same as the ControlPlane version (<Y>), waiting for version to be propagated to the "
    'MachineSet ("ControlPlaneVersionSkew" preflight check failed)'
)
def not_propagated(p: Preflight) -> str:
    return (
        f"MachineSet version ({p.version}) is not yet the same as the ControlPlane version ({_cp(p).version}), "
        f"waiting for version to be propagated to the MachineSet {_failed(CONTROL_PLANE_SKEW)}"
    )


@message("failed to read machineset.cluster.x-k8s.io/skip-preflight-checks annotation: <error>")
def why_skipped_unknown(p: Preflight) -> str:
    return f"failed to read {SKIP_PREFLIGHT_CHECKS_ANNOTATION} annotation: {p.skipped_error}"


@message("failed to perform preflight checks: <error>")
def why_unreadable(p: Preflight) -> str:
    return f"failed to perform preflight checks: {_cp(p).error}"


def _unparsable(what: str, text: str) -> str:
    try:
        parse_version(text)
    except ValueError as error:
        return f'failed to perform preflight checks: failed to parse version "{text}" of {what}: {error}'
    return ""


@message("failed to perform preflight checks: failed to parse version of the control plane")
def why_control_plane(p: Preflight) -> str:
    texts = (t for t in (_cp(p).version, _cp(p).status_version) if t is not None)
    return next((found for t in texts if (found := _unparsable(f"{_cp(p).kind} {_cp(p).key}", t))), "")


@message("failed to perform preflight checks: failed to parse version of the MachineSet")
def why_machine_set(p: Preflight) -> str:
    return _unparsable("the MachineSet", p.version)


class Checks(Enum):
    """Whether the checks are made."""

    MAKE = "make the checks"


# fmt: off
PREFLIGHT_CHECKS: Table[Preflight] = Table(
    "PreflightChecks",
    Row("skipped-unknown",    enabled & skipped_unknown,                             KEEP, error=why_skipped_unknown),
    Row("not-asked",          ~enabled | skip_all | ~has_control_plane,              KEEP),
    Row("unreadable",         unreadable,                                            KEEP, error=why_unreadable),
    Row("without-version",    ~versioned,                                            KEEP),
    Row("no-version",         ~version_parsable,                                     KEEP, error=why_control_plane),
    Row("no-status-version",  asks_stable & ~upgrade_pending & ~status_parsable,     KEEP, error=why_control_plane),
    Row("no-machine-version", ~machine_version_parsable,                             KEEP, error=why_machine_set),
    Row("asked",              OTHERWISE,                                             KEEP, act=Checks.MAKE),
    about="Whether the checks can be made: they need a control plane with a version.",
    assuming=[has_control_plane | ~(unreadable | versioned), ~unreadable | ~versioned, versioned | version_parsable, versioned | ~upgrade_pending],
)
PREFLIGHT: Table[Preflight] = Table(
    "Preflight",
    Collect("failed", false("PreflightCheckFailed"),
        Because("upgrade-pending", asks_stable & upgrade_pending,                    _stable_message("has a pending version upgrade to <version>")),
        Because("provisioning",    asks_stable & ~upgrade_pending & provisioning,    _stable_message("is provisioning")),
        Because("upgrading",       asks_stable & ~upgrade_pending & upgrading,       _stable_message("is upgrading")),
        Because("too-new",         asks_skew & too_new,                              _skew_message(f"{KUBERNETES_POLICY} higher than ControlPlane version", KUBERNETES_SKEW)),
        Because("too-old",         asks_skew & too_old,                              _skew_message(f"{KUBERNETES_POLICY} more than 3 minor versions older than the ControlPlane version", KUBERNETES_SKEW)),
        Because("other-minor",     asks_kubeadm & other_minor,                       _skew_message(KUBEADM_POLICY, KUBEADM_SKEW)),
        Because("not-propagated",  asks_version & other_version,                     not_propagated),
        bullet="",
    ),
    Row("passed",             OTHERWISE,                                             true("PreflightCheckPassed")),
    about="Whether a new Machine could join: the control plane is neither being made nor upgraded, and the versions fit. All failed checks are reported.",
    assuming=[~(provisioning & upgrading), ~(too_new & too_old), ~(too_new | too_old) | other_minor],
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of the checks: why Machines may not be created, or the error that prevented the checks."""

    messages: tuple[str, ...] = ()
    error: str = ""

    @property
    def passed(self) -> bool:
        """Whether a Machine may be created."""
        return not self.messages and not self.error


PASSED: Final = Verdict()


def verdict(preflight: Preflight, decide: Callable[[Table[Preflight], Preflight], Decision]) -> Verdict:
    """Evaluate the tables with `decide`, which records each decision."""
    possible = decide(PREFLIGHT_CHECKS, preflight)
    if possible.chosen(Checks) is not Checks.MAKE:
        return Verdict(error=possible.error)
    outcome = decide(PREFLIGHT, preflight).outcome
    return Verdict(messages=tuple(outcome.message.split("\n")) if outcome and outcome.status == "False" else ())


def is_kubeadm(group: str, kind: str) -> bool:
    """Return whether a bootstrap template uses kubeadm."""
    return group == BOOTSTRAP_GROUP and kind == "KubeadmConfigTemplate"
