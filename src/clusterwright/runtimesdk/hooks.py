"""The catalog of hooks: which there are, and what their answers look like. Pure.

Answers are read by these models: a field of another type is no answer, a field that nobody knows is passed over, and null is as good as
absent. What an answer carries for somebody else (patches, plans, variables) stays JSON: who asked reads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from clusterwright.api.codec import without_nulls
from clusterwright.api.meta import Json
from clusterwright.topology.extensions import HOOKS_API_VERSION

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class Response(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What every answer has."""

    status: str = ""
    message: str = ""


class RetryResponse(Response, frozen=True):
    """An answer that may ask for patience: 0 means done."""

    retry_after_seconds: Int32 = 0


class Patch(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A patch, base64 on the wire."""

    patch_type: str = ""
    patch: bytes = b""


class PatchItem(Patch, frozen=True):
    """The patch of one item of a request."""

    uid: str = ""


class GeneratePatchesResponse(Response, frozen=True):
    items: tuple[PatchItem, ...] = ()


class DiscoverVariablesResponse(Response, frozen=True):
    variables: tuple[dict[str, Any], ...] = ()


class UpgradeStep(msgspec.Struct, frozen=True, omit_defaults=True):
    version: str = ""


class GenerateUpgradePlanResponse(Response, frozen=True):
    control_plane_upgrades: tuple[UpgradeStep, ...] = ()
    workers_upgrades: tuple[UpgradeStep, ...] = ()


class CanUpdateMachineResponse(Response, frozen=True):
    machine_patch: Patch | None = None
    infrastructure_machine_patch: Patch | None = None
    bootstrap_config_patch: Patch | None = None


class CanUpdateMachineSetResponse(Response, frozen=True):
    machine_set_patch: Patch | None = None
    infrastructure_machine_template_patch: Patch | None = None
    bootstrap_config_template_patch: Patch | None = None


class RequestHook(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    hook: str = ""


class ExtensionHandler(msgspec.Struct, frozen=True, rename="camel"):
    """A handler as an extension describes it; None: it does not say."""

    name: str = ""
    request_hook: RequestHook = RequestHook()
    timeout_seconds: Int32 | None = None
    failure_policy: str | None = None


class DiscoveryResponse(Response, frozen=True):
    handlers: tuple[ExtensionHandler, ...] = ()


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook. `always_fails`: no failure policy makes a success of a failed call."""

    name: str
    tag: str
    response: type[Response]
    always_fails: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether an answer may ask for patience."""
        return issubclass(self.response, RetryResponse)


_LIFECYCLE = "Lifecycle Hooks"
_MUTATION = "Topology Mutation Hook"
_IN_PLACE = "In-Place Update Hooks"

HOOKS: Final[dict[str, Hook]] = {
    hook.name: hook
    for hook in (
        Hook("Discovery", "Discovery", DiscoveryResponse),
        Hook("BeforeClusterCreate", _LIFECYCLE, RetryResponse),
        Hook("AfterControlPlaneInitialized", _LIFECYCLE, Response),
        Hook("BeforeClusterUpgrade", _LIFECYCLE, RetryResponse),
        Hook("BeforeControlPlaneUpgrade", _LIFECYCLE, RetryResponse),
        Hook("AfterControlPlaneUpgrade", _LIFECYCLE, RetryResponse),
        Hook("BeforeWorkersUpgrade", _LIFECYCLE, RetryResponse),
        Hook("AfterWorkersUpgrade", _LIFECYCLE, RetryResponse),
        Hook("AfterClusterUpgrade", _LIFECYCLE, RetryResponse),
        Hook("BeforeClusterDelete", _LIFECYCLE, RetryResponse),
        Hook("GeneratePatches", _MUTATION, GeneratePatchesResponse),
        Hook("ValidateTopology", _MUTATION, Response),
        Hook("DiscoverVariables", _MUTATION, DiscoverVariablesResponse),
        Hook("GenerateUpgradePlan", "Chained Upgrade Hook", GenerateUpgradePlanResponse),
        Hook("CanUpdateMachine", _IN_PLACE, CanUpdateMachineResponse),
        Hook("CanUpdateMachineSet", _IN_PLACE, CanUpdateMachineSetResponse),
        # an extension that nobody reaches has updated nothing
        Hook("UpdateMachine", _IN_PLACE, RetryResponse, always_fails=True),
    )
}
"""All hooks of the one version that there is."""


def is_known(api_version: str, hook: str) -> bool:
    """Whether the catalog has the hook."""
    return api_version == HOOKS_API_VERSION and hook in HOOKS


class BadAnswer(ValueError):
    """A body that is no answer of the hook."""


def read_answer(hook: Hook, body: bytes) -> Response:
    """The answer in a body; what follows the first JSON value does not count. Raises BadAnswer."""
    try:
        answer, _ = json.JSONDecoder().raw_decode(body.decode().lstrip())
        if answer is None:
            return hook.response()
        return msgspec.convert(without_nulls(answer), hook.response)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise BadAnswer(str(error) or type(error).__name__) from None


def as_json(answer: Response) -> Json:
    """The answer as the wire has it, without what it does not say."""
    found: Json = msgspec.json.decode(msgspec.json.encode(answer))
    return found
