"""Fields of providers' objects, by their contract. Pure, and defensive: any field may have any type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from clusterwright.api.contract import CONTRACTS, FAILURE_MESSAGE, FAILURE_REASON, Malformed, MalformedField, Path, or_none
from clusterwright.api.meta import V1Beta1Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.lookup import Found, Lookup
from clusterwright.tables import Outcome

V = TypeVar("V")


def field_of(found: Found, path: Path[V]) -> V | None:
    """Return a field of a provider's object; None if it is absent. Raises MalformedField."""
    read = path.read(found.object.json)
    if isinstance(read, Malformed):
        raise MalformedField(f"{found.object.kind} {found.object.key}: {read}")
    return or_none(read)


def read_error(lookup: Lookup, *reads: Callable[[Found], object]) -> str:
    """Return the error of the first of these reads that fails; empty if none does, or if there is no object to read."""
    if not isinstance(lookup, Found):
        return ""
    try:
        for read in reads:
            read(lookup)
    except MalformedField as error:
        return str(error)
    return ""


def read_or_none(lookup: Lookup, read: Callable[[Found], V]) -> V | None:
    """Return the result of a read; None if there is no object to read, or it cannot be read."""
    try:
        return read(lookup) if isinstance(lookup, Found) else None
    except MalformedField:
        return None


def data_secret_created(config: Found) -> bool:
    """Return whether a bootstrap config reports that the data exists. Raises MalformedField."""
    return field_of(config, CONTRACTS[config.contract].bootstrap_config.data_secret_created) is True


def data_secret_name(config: Found) -> str:
    """Return the Secret with the bootstrap data; empty if the bootstrap config does not name it. Raises MalformedField."""
    return field_of(config, CONTRACTS[config.contract].bootstrap_config.data_secret_name) or ""


def failure(found: Found) -> tuple[str, str]:
    """Return reason and message of the terminal failure of the object; empty if it reports none. Raises MalformedField."""
    return field_of(found, FAILURE_REASON) or "", field_of(found, FAILURE_MESSAGE) or ""


def repeated_failure(lookup: Lookup) -> tuple[str, str]:
    """Return reason and message of the terminal failure of the object, as its owner copies them; unreadable ones are left out."""
    if not isinstance(lookup, Found):
        return "", ""
    obj = lookup.object
    reason, text = (obj.at(*path.steps) for path in (FAILURE_REASON, FAILURE_MESSAGE))
    described = f'{obj.gvk.api_version}, Kind={obj.kind} with name "{obj.key.name}"'
    message = f"Failure detected from referenced resource {described}: {text}" if isinstance(text, str) and text else ""
    return reason if isinstance(reason, str) else "", message


def mirrored_ready(lookup: Lookup, *, holds: bool, waiting: str) -> Outcome:
    """Return Ready of a provider's object as a deprecated condition; if missing, derived from the contract's flag."""
    fallback = V1Beta1Condition(status="True") if holds else V1Beta1Condition(status="False", severity="Info", reason=waiting)
    source = v1beta1.of_foreign(lookup.object) if isinstance(lookup, Found) else ()
    found = v1beta1.mirror(source, "Ready", fallback) or fallback
    return Outcome(found.status, found.reason, found.message, found.severity, found.last_transition_time)
