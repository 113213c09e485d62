"""Bootstrap tokens on the workload cluster: make, look at, prolong."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta
from random import Random

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.kubeadm import tokens
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound


class TokenFailed(PassFailed):
    """Something about the token went wrong; the text says what and never quotes the token."""


class TokenGone(TokenFailed):
    """The token's Secret is not there."""


async def create_token(remote: Client, random: Random, now: datetime, ttl: timedelta) -> str:
    """Make a token that the workload cluster accepts until now + ttl. Raises TokenFailed."""
    token = tokens.new_token(random)
    try:
        await remote.create(tokens.token_secret(token, now=now, ttl=ttl))
    except ApiError as error:
        raise TokenFailed(f"failed to create new bootstrap token: {error}") from error
    return token


async def _read(remote: Client, token: str) -> Secret:
    """The token's Secret. Raises TokenError, TokenGone and ApiError."""
    key = ObjectKey(tokens.NAMESPACE, tokens.secret_name(token))
    secret = await remote.live.find(Secret, key)
    if secret is None:
        raise TokenGone(f'secrets "{key.name}" not found')
    if not secret.data:
        raise tokens.TokenError(f'Invalid bootstrap secret "{key.name}", remove the token from the kubeadm config to re-create')
    return secret


async def refresh_token(remote: Client, token: str, now: datetime, ttl: timedelta) -> bool:
    """Prolong the token if less than 5/6 of its life is left; whether it was. Raises TokenGone, TokenFailed, TokenError."""
    try:
        secret = await _read(remote, token)
    except TokenGone as error:
        raise TokenGone(f"failed to get bootstrap token secret in order to refresh it: {error}") from None
    except (ApiError, tokens.TokenError) as error:
        raise TokenFailed(f"failed to get bootstrap token secret in order to refresh it: {error}") from error
    if not tokens.read_expiration(secret.data).needs_refresh(now, ttl):
        return False
    end = b64encode(tokens.new_expiration(now, ttl).encode()).decode()
    change: Json = {"metadata": {"resourceVersion": secret.metadata.resource_version}, "data": {tokens.EXPIRATION_KEY: end}}
    try:
        await remote.patch(Secret, secret.key, change)
    except NotFound as error:
        raise TokenGone(f"failed to refresh bootstrap token: {error}") from None
    except ApiError as error:
        raise TokenFailed(f"failed to refresh bootstrap token: {error}") from error
    return True


async def needs_rotation(remote: Client, token: str, now: datetime, ttl: timedelta) -> bool:
    """Whether a pool's token should be replaced: half of its life is over, or its Secret is gone. Raises ApiError, TokenError."""
    try:
        secret = await _read(remote, token)
    except TokenGone:
        return True
    return tokens.read_expiration(secret.data).needs_rotation(now, ttl)
