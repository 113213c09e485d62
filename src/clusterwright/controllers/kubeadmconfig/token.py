"""Bootstrap tokens on the workload cluster: create, read, prolong. The table `plan.TOKEN` decides on the result."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from random import Random

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.kubeadm import tokens
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound


class Token(Enum):
    """The state of a token on the workload cluster."""

    GOOD = "good"
    NEAR_ITS_END = "less than 5/6 of its life is left"
    PAST_HALF = "less than half of its life is left"
    GONE = "its Secret does not exist"
    UNREADABLE = "its Secret cannot be read or written"
    NOT_CREATED = "it could not be created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The result of a request about a token. `detail` describes a failure; it never quotes the token."""

    state: Token
    secret: Secret | None = None
    detail: str = ""
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFound:
    """A token and the facts about its owner, for the table."""

    state: Token
    detail: str
    ttl: timedelta
    used: bool
    """Whether the infrastructure was created with this token, so that a new one is too late."""
    join_impossible: bool
    """Whether no node can join now, so that a new token would be useless yet."""


async def create_token(remote: Client, random: Random, now: datetime, ttl: timedelta) -> str:
    """Create a token that the workload cluster accepts until now + ttl. Raises ApiError."""
    token = tokens.new_token(random)
    await remote.create(tokens.token_secret(token, now=now, ttl=ttl))
    return token


async def look(remote: Client, token: str, now: datetime, ttl: timedelta, *, rotate: bool) -> Look:
    """Return the state of a token: with `rotate` whether it must be replaced, else whether it must be prolonged."""
    context = "" if rotate else "failed to get bootstrap token secret in order to refresh it: "
    try:
        key = ObjectKey(tokens.NAMESPACE, tokens.secret_name(token))
        secret = await remote.live.find(Secret, key)
        if secret is not None and not secret.data:
            raise tokens.TokenError(f'Invalid bootstrap secret "{key.name}", remove the token from the kubeadm config to re-create')
    except (ApiError, tokens.TokenError) as error:
        return Look(state=Token.UNREADABLE, detail=f"{context}{error}", error=error)
    if secret is None:
        return Look(state=Token.GONE, detail=f'{context}secrets "{key.name}" not found')
    try:
        end = tokens.read_expiration(secret.data)
        if rotate:
            return Look(state=Token.PAST_HALF if end.needs_rotation(now, ttl) else Token.GOOD, secret=secret)
    except tokens.TokenError as error:
        return Look(state=Token.UNREADABLE, detail=str(error), error=error)
    return Look(state=Token.NEAR_ITS_END if end.needs_refresh(now, ttl) else Token.GOOD, secret=secret)


async def prolong(remote: Client, secret: Secret, now: datetime, ttl: timedelta) -> Look | None:
    """Set the expiry of this Secret's token to now + ttl; return what prevented it, or None."""
    end = b64encode(tokens.new_expiration(now, ttl).encode()).decode()
    change: Json = {"metadata": {"resourceVersion": secret.metadata.resource_version}, "data": {tokens.EXPIRATION_KEY: end}}
    try:
        await remote.patch(Secret, secret.key, change)
    except ApiError as error:
        state = Token.GONE if isinstance(error, NotFound) else Token.UNREADABLE
        return Look(state=state, detail=f"failed to refresh bootstrap token: {error}", error=error)
    return None
