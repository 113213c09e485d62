"""What the objects of providers say, by the contract that they follow. Pure, and suspicious: any field may have any type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clusterwright.api.contract import CONTRACTS, FAILURE_MESSAGE, FAILURE_REASON, Malformed, MalformedField, Path, or_none
from clusterwright.api.meta import V1Beta1Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.lookup import Found, Lookup
from clusterwright.tables import Outcome

V = TypeVar("V")


def told(found: Found, path: Path[V]) -> V | None:
    """Return what a provider's object says at a place; None if it does not tell. Raises MalformedField."""
    read = path.read(found.object.json)
    if isinstance(read, Malformed):
        raise MalformedField(f"{found.object.kind} {found.object.key}: {read}")
    return or_none(read)


def complaint(lookup: Lookup, *reads: Callable[[Found], object]) -> str:
    """Return what is wrong with the first of these reads that fails; empty: nothing, also where nothing was found to be read."""
    if not isinstance(lookup, Found):
        return ""
    try:
        for read in reads:
            read(lookup)
    except MalformedField as error:
        return str(error)
    return ""


def said(lookup: Lookup, read: Callable[[Found], V]) -> V | None:
    """Return what a read finds; None where nothing was found to be read, or it cannot be read."""
    return read(lookup) if isinstance(lookup, Found) and not complaint(lookup, read) else None


def data_secret_created(config: Found) -> bool:
    """Return whether a bootstrap config says that the data is there. Raises MalformedField."""
    return told(config, CONTRACTS[config.contract].bootstrap_config.data_secret_created) is True


def data_secret_name(config: Found) -> str:
    """Return the Secret with the bootstrap data; empty if the bootstrap config does not tell. Raises MalformedField."""
    return told(config, CONTRACTS[config.contract].bootstrap_config.data_secret_name) or ""


def failure(found: Found) -> tuple[str, str]:
    """Reason and message of the terminal failure that the object reports; empty where it reports none. Raises MalformedField."""
    return told(found, FAILURE_REASON) or "", told(found, FAILURE_MESSAGE) or ""


def repeated_failure(lookup: Lookup) -> tuple[str, str]:
    """Reason and message of the terminal failure that the object reports, as its owner repeats them; what cannot be read is left out."""
    if not isinstance(lookup, Found):
        return "", ""
    obj = lookup.object
    reason, text = (obj.at(*path.steps) for path in (FAILURE_REASON, FAILURE_MESSAGE))
    described = f'{obj.gvk.api_version}, Kind={obj.kind} with name "{obj.key.name}"'
    message = f"Failure detected from referenced resource {described}: {text}" if isinstance(text, str) and text else ""
    return reason if isinstance(reason, str) else "", message


def mirrored_ready(lookup: Lookup, *, holds: bool, waiting: str) -> Outcome:
    """Ready of a provider's object as a deprecated condition; not reported: by the flag of the contract."""
    fallback = V1Beta1Condition(status="True") if holds else V1Beta1Condition(status="False", severity="Info", reason=waiting)
    source = v1beta1.of_foreign(lookup.object) if isinstance(lookup, Found) else ()
    found = v1beta1.mirror(source, "Ready", fallback) or fallback
    return Outcome(found.status, found.reason, found.message, found.severity, found.last_transition_time)
