"""The catalog of hooks, with the models of requests and answers. Pure.

Answers are parsed with these models: a field of a wrong type makes the answer invalid, an unknown field is skipped, and null equals absent.
Parts of an answer for other code (patches, plans, variables) stay JSON; the caller parses them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from clusterwright.api.codec import without_nulls
from clusterwright.api.constraints import REQUIRED, Format, ListMap, OneOf
from clusterwright.api.meta import Json
from clusterwright.runtimesdk import requests
from clusterwright.topology.extensions import HOOKS_API_VERSION

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31), Format("int32")]


class Response(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The fields of every answer."""

    status: Annotated[str, REQUIRED, OneOf("Failure", "Success")] = ""
    message: str = ""


class RetryResponse(Response, frozen=True, kw_only=True):
    """An answer that may request a retry: 0 means done."""

    retry_after_seconds: Annotated[Int32, REQUIRED] = 0


class Patch(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A patch, base64 on the wire."""

    patch_type: Annotated[str, REQUIRED] = ""
    patch: Annotated[bytes, REQUIRED] = b""


class GeneratePatchesResponseItem(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The patch of one item of a request."""

    uid: Annotated[str, REQUIRED] = ""
    patch_type: Annotated[str, REQUIRED] = ""
    patch: Annotated[bytes, REQUIRED] = b""


class GeneratePatchesResponse(Response, frozen=True):
    items: tuple[GeneratePatchesResponseItem, ...] = ()


class DiscoverVariablesResponse(Response, frozen=True):
    variables: tuple[dict[str, Any], ...] = ()


class UpgradeStep(msgspec.Struct, frozen=True, omit_defaults=True):
    version: Annotated[str, REQUIRED] = ""


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


class GroupVersionHook(msgspec.Struct, frozen=True, rename="camel"):
    api_version: Annotated[str, REQUIRED] = ""
    hook: Annotated[str, REQUIRED] = ""


class ExtensionHandler(msgspec.Struct, frozen=True, rename="camel"):
    """A handler in an extension's description; None: not set."""

    name: Annotated[str, REQUIRED] = ""
    request_hook: Annotated[GroupVersionHook, REQUIRED] = GroupVersionHook()
    timeout_seconds: Int32 | None = None
    failure_policy: str | None = None


class DiscoveryResponse(Response, frozen=True):
    handlers: Annotated[tuple[ExtensionHandler, ...], ListMap("name")] = ()


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook. `always_fails`: no failure policy hides a failed call."""

    name: str
    tag: str
    request: type[msgspec.Struct]
    response: type[Response]
    always_fails: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether an answer may request a retry."""
        return issubclass(self.response, RetryResponse)


_LIFECYCLE = "Lifecycle Hooks"
_MUTATION = "Topology Mutation Hook"
_IN_PLACE = "In-Place Update Hooks"

HOOKS: Final[dict[str, Hook]] = {
    hook.name: hook
    for hook in (
        Hook("Discovery", "Discovery", requests.DiscoveryRequest, DiscoveryResponse),
        Hook("BeforeClusterCreate", _LIFECYCLE, requests.ClusterRequest, RetryResponse),
        Hook("AfterControlPlaneInitialized", _LIFECYCLE, requests.ClusterRequest, Response),
        Hook("BeforeClusterUpgrade", _LIFECYCLE, requests.BeforeStepRequest, RetryResponse),
        Hook("BeforeControlPlaneUpgrade", _LIFECYCLE, requests.BeforeStepRequest, RetryResponse),
        Hook("AfterControlPlaneUpgrade", _LIFECYCLE, requests.AfterStepRequest, RetryResponse),
        Hook("BeforeWorkersUpgrade", _LIFECYCLE, requests.BeforeStepRequest, RetryResponse),
        Hook("AfterWorkersUpgrade", _LIFECYCLE, requests.AfterStepRequest, RetryResponse),
        Hook("AfterClusterUpgrade", _LIFECYCLE, requests.AfterClusterUpgradeRequest, RetryResponse),
        Hook("BeforeClusterDelete", _LIFECYCLE, requests.ClusterRequest, RetryResponse),
        Hook("GeneratePatches", _MUTATION, requests.GeneratePatchesRequest, GeneratePatchesResponse),
        Hook("ValidateTopology", _MUTATION, requests.ValidateTopologyRequest, Response),
        Hook("DiscoverVariables", _MUTATION, requests.Request, DiscoverVariablesResponse),
        Hook("GenerateUpgradePlan", "Chained Upgrade Hook", requests.GenerateUpgradePlanRequest, GenerateUpgradePlanResponse),
        Hook("CanUpdateMachine", _IN_PLACE, requests.CanUpdateMachineRequest, CanUpdateMachineResponse),
        Hook("CanUpdateMachineSet", _IN_PLACE, requests.CanUpdateMachineSetRequest, CanUpdateMachineSetResponse),
        # an extension that nobody reaches has updated nothing
        Hook("UpdateMachine", _IN_PLACE, requests.UpdateMachineRequest, RetryResponse, always_fails=True),
    )
}
"""All hooks, in their only version."""


def is_known(api_version: str, hook: str) -> bool:
    """Return whether the catalog has the hook."""
    return api_version == HOOKS_API_VERSION and hook in HOOKS


class BadAnswer(ValueError):
    """A body is not an answer of the hook."""


def read_answer(hook: Hook, body: bytes) -> Response:
    """Return the answer in a body; text after the first JSON value is ignored. Raises BadAnswer."""
    try:
        answer, _ = json.JSONDecoder().raw_decode(body.decode().lstrip())
        if answer is None:
            return hook.response()
        return msgspec.convert(without_nulls(answer), hook.response)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise BadAnswer(str(error) or type(error).__name__) from None


def as_json(answer: Response) -> Json:
    """Return the answer as JSON, without unset fields."""
    found: Json = msgspec.json.decode(msgspec.json.encode(answer))
    return found
