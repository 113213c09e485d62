"""A runtime extension in the same process, with handlers from a scenario."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from clusterwright.api.meta import Json

_VERSION: Final = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
Handler = Callable[[Json], Json]


class Scripted:
    """Answers hooks with functions. `failure`: the message with which all hooks but discovery fail. `calls`: all calls."""

    def __init__(self, **handlers: Handler) -> None:
        self._handlers = handlers
        self.failure = ""
        self.calls: list[str] = []

    def objects(self) -> list[Json]:
        """Return the objects that register the extension."""
        spec = {"clientConfig": {"url": "https://ext.example.com/"}, "namespaceSelector": {}}
        return [{"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "ext"}, "spec": spec}]

    async def __call__(self, handler: Any, url: str, body: bytes) -> tuple[int, bytes]:
        """Answer a request."""
        hook = next((h for h in self._handlers if urlsplit(url).path.endswith(f"/{h.lower()}/{h.lower()}")), "Discovery")
        answer: Json = {"status": "Success"}
        if hook == "Discovery":
            answer["handlers"] = [
                {"name": h.lower(), "requestHook": {"apiVersion": _VERSION, "hook": h}, "timeoutSeconds": 10, "failurePolicy": "Fail"}
                for h in self._handlers
            ]
        else:
            self.calls.append(hook)
            answer = {"status": "Failure", "message": self.failure} if self.failure else self._handlers[hook](msgspec.json.decode(body))
        return 200, msgspec.json.encode({"apiVersion": _VERSION, "kind": f"{hook}Response", **answer})


def success(request: Json) -> Json:
    """Let the hook pass."""
    return {"status": "Success", "retryAfterSeconds": 0}


def updates() -> Scripted:
    """Return an extension that updates the version of Machines in place, each in five seconds."""
    begun: set[str] = set()

    def can_update(request: Json) -> Json:
        answer: Json = {"status": "Success"}
        for part, path in (("machine", ("spec",)), ("machineSet", ("spec", "template", "spec"))):
            if part in request["current"] and part in request["desired"]:
                wanted = request["desired"][part]
                for step in path:
                    wanted = wanted[step]
                change: Json = {"version": wanted["version"]}
                for step in reversed(path):
                    change = {step: change}
                answer[f"{part}Patch"] = {"patchType": "JSONMergePatch", "patch": base64.b64encode(msgspec.json.encode(change)).decode()}
        return answer

    def update(request: Json) -> Json:
        machine = request["desired"]["machine"]
        key = f"{machine['metadata']['name']} {machine['spec']['version']}"
        is_done = key in begun
        begun.symmetric_difference_update({key})
        return {"status": "Success", "retryAfterSeconds": 0 if is_done else 5}

    return Scripted(CanUpdateMachine=can_update, CanUpdateMachineSet=can_update, UpdateMachine=update)
