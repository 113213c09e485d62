"""Refuse grants of permissions that the user does not have; limit the size of roles and bindings so that they can be compared."""

from __future__ import annotations

from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.auth.rbac import GROUP, RbacAuthorizer, decoded_rules
from clusterwright.apiserver.auth.rules import Held, Rule, Uncomparable, quoted, shown
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import ErrorType, FieldError, forbidden_error, invalid_error, not_found, too_many

SUBJECTS: Final = 1000
"""The most subjects that a binding may have."""
ENTRIES: Final = 10_000
"""The most entries that all lists of a role's rules may have together."""
_LISTS: Final = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
_EVERYTHING: Final = (Rule(verbs=("*",), api_groups=("*",), resources=("*",)), Rule(verbs=("*",), non_resource_urls=("*",)))
_COLLECTED: Final = frozenset({"finalizers", "ownerReferences", "managedFields", "resourceVersion", "generation"})


def check_size(kind: str, obj: Json, old: Json | None) -> None:
    """Refuse roles and bindings that are too large; stored ones may stay as they are. Raises StatusError (422)."""
    errors: list[FieldError] = []
    subjects = len(obj.get("subjects") or ())
    if subjects > SUBJECTS and subjects > len((old or {}).get("subjects") or ()):
        errors.append(too_many("subjects", subjects, SUBJECTS))
    entries = _entries(obj)
    if entries > ENTRIES and (old is None or entries > _entries(old)):
        text = f"the lists of all rules together must have at most {ENTRIES} items; use several roles"
        errors.append(FieldError(ErrorType.TOO_MANY, "rules", entries, text))
    if errors:
        raise invalid_error(GROUP, kind, obj["metadata"].get("name") or "", errors)


def _entries(obj: Json) -> int:
    return sum(len(rule.get(name) or ()) for rule in obj.get("rules") or () for name in _LISTS)


def check_grants(server: Core, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    """Refuse a role or binding that grants permissions that the user lacks, without `escalate` or `bind`. Raises StatusError (403)."""
    authorizer = server.authorizer
    if not isinstance(authorizer, RbacAuthorizer) or "system:masters" in user.groups:
        return
    name = obj["metadata"].get("name") or ""
    if plural in {"roles", "clusterroles"}:
        aggregates = bool(obj.get("aggregationRule") or (old or {}).get("aggregationRule")) and not _only_collected(obj, old)
        if old is not None and old.get("rules") == obj.get("rules") and not aggregates:
            return
        wanted: tuple[Rule, ...] | None = msgspec.convert(obj.get("rules") or [], tuple[Rule, ...], strict=False)
        verb, role_plural, role_name = "escalate", plural, name
    else:
        aggregates = False
        if old is not None and (old.get("subjects"), old.get("roleRef")) == (obj.get("subjects"), obj.get("roleRef")):
            return
        reference = obj.get("roleRef") or {}
        role_name = reference.get("name") or ""
        of_cluster = reference.get("kind") == "ClusterRole"
        verb, role_plural = "bind", "clusterroles" if of_cluster else "roles"
        table = server.store.table(f"{role_plural}.{GROUP}")
        entry = table.objects.get(role_name if of_cluster else f"{namespace}/{role_name}")
        wanted = decoded_rules(entry) if entry is not None else None
    asked = RequestInfo(
        path="", verb=verb, is_resource=True, group=GROUP, version="v1", namespace=namespace, resource=role_plural, name=role_name
    )
    if authorizer.allows(server, user, asked):
        return
    if wanted is None:
        raise not_found(GROUP, plural, role_name)
    who = f'user "{user.name}" (groups={quoted(user.groups)})'
    try:
        held = Held(authorizer.rules(server, user, namespace))
        missing, count = held.missing(wanted)
        lacks = aggregates and held.missing(_EVERYTHING)[1]
    except Uncomparable:
        text = f'{who} has rules that are too many to compare with these: grant less at once, or have the verb "{verb}" on {role_plural}'
        raise forbidden_error(GROUP, plural, name, text) from None
    if count:
        more = f"\nand {count - len(missing)} more" if count > len(missing) else ""
        text = f"{who} is attempting to grant RBAC permissions not currently held:\n{shown(missing)}{more}"
        raise forbidden_error(GROUP, plural, name, text)
    if lacks:
        # it can gather anything, now or later
        raise forbidden_error(GROUP, plural, name, "must have cluster-admin privileges to use an aggregationRule")


def _only_collected(obj: Json, old: Json | None) -> bool:
    """Return whether only fields change that the garbage collector may change."""
    if old is None:
        return False
    kept = ({k: v for k, v in o["metadata"].items() if k not in _COLLECTED} for o in (obj, old))
    new_meta, old_meta = kept
    return new_meta == old_meta and {**obj, "metadata": None} == {**old, "metadata": None}
