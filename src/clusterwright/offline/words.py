"""Phrases that show the subject of a foreign controller's message: data, each with an example."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Phrases:
    """Phrases to look for in a text.

    `anyhow` match in any case of letters, `exact` as they are written, `whole` only as whole words. `near` has a phrase, those
    that follow it, and the most letters between them.
    """

    example: str
    anyhow: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    near: tuple[tuple[str, tuple[str, ...], int], ...] = ()
    _lower: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        """Prepare the phrases once."""
        object.__setattr__(self, "_lower", tuple(phrase.lower() for phrase in self.anyhow))

    def said_in(self, text: str) -> bool:
        """Return whether a text has one of them."""
        lower = text.lower()
        return (
            any(phrase in lower for phrase in self._lower)
            or any(phrase in text for phrase in self.exact)
            or (bool(self.whole) and not set(self.whole).isdisjoint(_words(text)))
            or any(_is_near(lower, *one) for one in self.near)
        )


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text).split()


def names_in(text: str) -> list[str]:
    """Return the names and kinds in a text, in order, without quotes and marks of the sentence. Example: `Machine`, `default/m-0`."""
    plain = "".join(c if c.isalnum() or c in "-./" else " " for c in text)
    return [name for part in plain.split() if (name := part.strip("./-"))]


def _is_near(text: str, first: str, then: tuple[str, ...], within: int) -> bool:
    at = text.find(first)
    while at >= 0:
        end = at + len(first)
        if any(text.find(phrase, end, end + within + len(phrase)) >= 0 for phrase in then):
            return True
        at = text.find(first, end)
    return False


def last_word(name: str) -> str:
    """Return the last word of a condition's type or reason. Example: `Failed` of `CreateFailed`."""
    return name[max((n for n, letter in enumerate(name) if letter.isupper()), default=0) :]


ABSENT: Final = Phrases('secrets "login" not found', ("not found", "does not exist", "no such", "missing"))
ERROR: Final = Phrases(
    "failed to create the instance",
    ("fail", "error", "does not exist", "not found", "cannot", "can't", "unable", "invalid", "denied", "forbidden", "exceed", "quota",
     "unauthorized", "unauthorised", "time out", "timeout", "timed out", "timedout", "missing", "refused", "blocked", "unsupported",
     "not allowed", "no such", "must be", "rejected"),
)  # fmt: skip
BLOCKED: Final = Phrases(
    "the rollout is blocked because: the template does not exist",
    ("blocked", "does not exist", "not found", "fail", "error", "denied", "forbidden", "exceeded", "invalid", "cannot", "can't"),
)
HELD: Final = Phrases("Following hooks are blocking the upgrade", ("on hold", "deferred"), whole=("blocking", "Blocking"))
"""A topology that a hook or a user holds."""
INITIALIZATION: Final = Phrases(
    "Waiting for the control plane to be initialized",
    ("WaitingForControlPlane", "ControlPlaneInitialized", "first control plane", "ControlPlaneIsStable"),
    near=(
        ("control plane", ("initialized", "initialised", "to be ready", "provisioning", "not yet"), 20),
        ("control plane ", ("upgrad", "stable"), 40),
    ),
)
INFRASTRUCTURE: Final = Phrases(
    "Waiting for cluster infrastructure to be ready",
    ("cluster infrastructure", "WaitingForClusterInfrastructure", "ClusterInfrastructureReady"),
    ("infrastructureProvisioned", "infrastructureReady", "controlPlaneEndpoint"),
)
UNINSPECTED: Final = Phrases("InspectionFailed Failed to get the Node", exact=("InspectionFailed ", "for etcd to report"))
"""Messages of a controller that could not read the workload cluster."""
CONNECTION: Final = Phrases(
    "Remote connection down since 2026-01-01T00:00:00Z",
    ("remote connection", "probe last", "probe failed"),
    ("ConnectionDown", "connection to the workload cluster", "successful probe"),
)
BOOTSTRAP: Final = Phrases(
    "Waiting for bootstrap data", ("bootstrap data", "WaitingForBootstrapData", "WaitingForDataSecret", "dataSecretName")
)
CLASS_PATCH: Final = Phrases('failed to generate patches for patch "zone"', ('patch "',), whole=("patches",))
CERTIFICATES: Final = Phrases(
    "x509: certificate signed by unknown authority",
    ("certificate", "x509", "kubeconfig", "private key"),
    whole=("tls", "TLS", "CA", "ca", "PEM", "pem"),
)
HALT: Final = Phrases(
    "the instance was terminated",
    ("etcd", "stopp", "terminat", "not run", "never run", " power", "shutdown", "shut down", "shut-down", "delet", "crash"),
    whole=("down", "gone"),
)
OTHER_PROCESS: Final = Phrases(
    "the API server does not run",
    ("api server", "apiserver", "api-server", "scheduler", "controller manager", "controller-manager", "controllermanager", "kubelet"),
)
EXHAUSTED: Final = Phrases(
    "IP pool vlan-12 has no free addresses",
    ("exhaust", "no free addresses", "no more addresses", "no available addresses", "no addresses left", "no addresses available",
     "pool is full", "pool is empty"),
)  # fmt: skip
TOKEN: Final = Phrases(
    'secrets "bootstrap-token-abcdef" not found',
    ("invalid bearer token",),
    near=(("bootstrap-token-", (" not found",), 40), ("token id ", (" is unknown",), 40)),
)
OF_A_NODE: Final = Phrases("Kubelet stopped posting node status.", ("kubelet",), ("Node.",))
"""Messages from the Node's conditions: the Node does not report, so its state is Unknown, but that it does not report is a fact."""
AWAITED: Final = Phrases(
    "Waiting for control plane to be initialized", ("control plane to be initialized", "WaitingForControlPlaneInitialized")
)
NEVER_MADE: Final = Phrases(
    "failed to create Machine",
    tuple(f"{verb} {to}{made}" for verb in ("failed", "error", "unable", "cannot") for to in ("", "to ") for made in ("creat", "clon")),
)
