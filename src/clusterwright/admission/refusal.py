"""How a hook refuses: in the words and forms that clients know from webhooks."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.codec import DecodeError, convert
from clusterwright.api.meta import Json, Object
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.status import FieldError, StatusError, failure, invalid_error


def hook_name(purpose: str, attributes: Attributes) -> str:
    """What the hook for a resource is called: `validation.kubeadmconfig.bootstrap.cluster.x-k8s.io`."""
    return f"{purpose}.{attributes.resource.kind.lower()}.{attributes.resource.group}"


def _text(hook: str, text: object) -> str:
    return f'admission webhook "{hook}" denied the request: {text}'


def unreadable(hook: str, error: Exception) -> StatusError:
    """The object cannot be held by its type: 400, and no more is known."""
    return failure(400, "", _text(hook, error))


def denied(hook: str, text: object) -> StatusError:
    """A bare refusal: 403 with a message only."""
    return failure(403, "Forbidden", _text(hook, text))


def invalid_object(hook: str, group: str, attributes: Attributes, errors: Sequence[FieldError]) -> StatusError:
    """Every broken rule at once: 422 with a cause for each."""
    refusal = invalid_error(group, attributes.resource.kind, attributes.name, errors)
    return StatusError(refusal.status | {"message": _text(hook, refusal)})


def read(attributes: Attributes, obj: Json, model: type[Object], purpose: str) -> Object:
    """The object as its type holds it; refuses what it cannot."""
    try:
        return convert(obj, model)
    except DecodeError as error:
        raise unreadable(hook_name(purpose, attributes), error) from None
