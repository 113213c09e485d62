"""Conversion webhooks, as CustomResourceDefinitions declare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.wire import UNREADABLE
from clusterwright.apiserver.callouts import CalloutFailed, Callouts
from clusterwright.apiserver.conversion import ConversionFailed, restored
from clusterwright.golang.quoting import quote

_GROUP: Final = "apiextensions.k8s.io"
_TIMEOUT: Final = 30.0
_BATCH: Final = 500
"""The most objects in one conversion request."""


class WebhookConverter:
    """Converts the objects of one CRD with its webhook."""

    immediate = False

    def __init__(self, webhook: Json, callouts: Callouts, new_uid: Callable[[], str]) -> None:
        self._client: Json = webhook.get("clientConfig") or {}
        known = [v for v in webhook.get("conversionReviewVersions") or () if v in {"v1", "v1beta1"}]
        self._review = known[0] if known else ""
        self._callouts, self._new_uid = callouts, new_uid

    def convert(self, obj: Json, api_version: str) -> Json:
        """Raise ConversionFailed: a webhook must be awaited."""
        raise ConversionFailed(f"a conversion to {api_version} by webhook cannot be had at once")

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """Return the objects in another version. Raises ConversionFailed."""
        objects = [o if "metadata" in o else {**o, "metadata": {}} for o in objects]  # managedfields converts parts of objects
        made: list[Json] = []
        for start in range(0, len(objects), _BATCH):
            made += await self._ask(objects[start : start + _BATCH], api_version)
        return made

    async def _ask(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        about = f"conversion webhook for {_shown(objects[0])}"
        if not self._review:
            raise ConversionFailed("no supported conversion review versions")
        uid = self._new_uid()
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{self._review}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)},
        }
        try:
            raw = await self._callouts.post(self._client, msgspec.json.encode(review), timeout=_TIMEOUT)
            converted = self._read(raw, uid)
        except (CalloutFailed, *UNREADABLE) as e:
            raise ConversionFailed(f"{about} failed: {e}") from None
        if len(converted) != len(objects):
            raise ConversionFailed(f"{about} returned {len(converted)} objects, expected {len(objects)}")
        return [
            _checked(before, after, api_version, f"{about} returned invalid converted object at index {i}")
            for i, (before, after) in enumerate(zip(objects, converted, strict=True))
        ]

    def _read(self, raw: bytes, uid: str) -> list[Any]:
        answer = msgspec.json.decode(raw)
        if not isinstance(answer, dict):
            raise CalloutFailed("no response provided")
        response = answer.get("response")
        if self._review == "v1":
            said = GroupVersionKind.of(str(answer.get("apiVersion") or ""), str(answer.get("kind") or ""))
            if (answer.get("apiVersion"), answer.get("kind")) != (f"{_GROUP}/v1", "ConversionReview"):
                shown = f"{said.group}/{said.version}, Kind={said.kind}"
                raise CalloutFailed(f"expected webhook response of {_GROUP}/v1, Kind=ConversionReview, got {shown}")
        if not isinstance(response, dict):
            raise CalloutFailed("no response provided")
        if self._review == "v1" and response.get("uid") != uid:
            raise CalloutFailed(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid') or ''))}")
        result = response.get("result") if isinstance(response.get("result"), dict) else {}
        assert isinstance(result, dict)
        if result.get("status") != "Success":
            raise CalloutFailed(result.get("message") or f"response.result.status was '{result.get('status') or ''}', not 'Success'")
        converted = response.get("convertedObjects")
        return converted if isinstance(converted, list) else []


def _shown(obj: Json) -> str:
    gvk = GroupVersionKind.of(str(obj.get("apiVersion") or ""), str(obj.get("kind") or ""))
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _checked(before: Json, after: Any, api_version: str, about: str) -> Json:
    """Return the converted object if it is the one that was sent, in the requested version. Raises ConversionFailed."""
    if not isinstance(after, dict):
        raise ConversionFailed(f"{about}: it is not an object")
    if after.get("apiVersion") != api_version:
        raise ConversionFailed(f"{about}: invalid groupVersion (expected {api_version}, received {after.get('apiVersion') or ''})")
    if after.get("kind") != before["kind"]:
        raise ConversionFailed(f"{about}: invalid kind (expected {before['kind']}, received {after.get('kind') or ''})")
    old, new = before["metadata"], after.get("metadata")
    for field, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")) if isinstance(new, dict) else ():
        was, is_ = old.get(field) or "", (new or {}).get(field) or ""
        if was != is_:
            raise ConversionFailed(f"{about}: must have the same {shown}: {was} != {is_}")
    try:
        return restored(after, old)
    except ConversionFailed as e:
        raise ConversionFailed(f"{about.replace('converted object', 'metadata in object')}: {e}") from None
