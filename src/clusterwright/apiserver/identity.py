"""Users: the identity behind a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.api.meta import Json


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated (or anonymous) user, for authorisation and audit."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


def user_info(user: User) -> Json:
    """Return a user as a UserInfo of authentication.k8s.io."""
    info: Json = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {k: list(v) for k, v in user.extra.items()}
    return info
