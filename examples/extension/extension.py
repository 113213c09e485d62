"""A runtime extension in Python, with nothing but the standard library.

    python extension.py --port 9443 --certificate tls.crt --key tls.key

A handler is a function from a request to a response; which there are is told by Discovery, so that `extensionconfig.yaml` is all that a
cluster needs to know. This one has something of everything:

- Lifecycle: it holds back what the annotation `example.com/hold` of a Cluster names, for example
  `BeforeClusterUpgrade,BeforeClusterDelete`, and looks again after the number of seconds in the setting `retryAfterSeconds`.
- Topologies: a variable `banner`, which nodes print before they join; one of more than 80 characters is refused.
- Upgrades: the versions in the setting `kubernetesVersions`, one after the other.
- Updates in place: the Kubernetes version of Machines, and the commands that their nodes ran at the start.
"""

from __future__ import annotations

import argparse
import base64
import json
import shlex
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GROUP = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
API_VERSION = GROUP.strip("/")
HOLD = "example.com/hold"
HELD = (
    "BeforeClusterCreate",
    "BeforeClusterUpgrade",
    "BeforeControlPlaneUpgrade",
    "AfterControlPlaneUpgrade",
    "BeforeWorkersUpgrade",
    "AfterWorkersUpgrade",
    "AfterClusterUpgrade",
    "BeforeClusterDelete",
)
LONGEST_BANNER = 80
LARGEST = 32 * 1024 * 1024

Request = dict[str, Any]
Response = dict[str, Any]
Handler = Callable[[Request], Response]


class Extension:
    """Handlers by the path that they are called at."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[str, Handler]] = {}
        self._described: list[dict[str, Any]] = []

    def add(self, name: str, hook: str, handler: Handler, *, timeout_seconds: int = 10, failure_policy: str = "Fail") -> None:
        """Have a hook handled; the name is a DNS label, and unique."""
        self._handlers[f"{GROUP}{hook}/{name}".lower()] = (hook, handler)
        self._described.append(
            {
                "name": name,
                "requestHook": {"apiVersion": API_VERSION, "hook": hook},
                "timeoutSeconds": timeout_seconds,
                "failurePolicy": failure_policy,
            }
        )

    def answer(self, path: str, body: bytes) -> Response | None:
        """The response to a request; None: there is nothing at this path. A request that cannot be handled is answered with Failure."""
        if path == f"{GROUP}discovery":
            return _response("Discovery", {"status": "Success", "handlers": self._described})
        found = self._handlers.get(path)
        if found is None:
            return None
        hook, handler = found
        try:
            return _response(hook, handler(json.loads(body)))
        except Exception as error:
            return _response(hook, {"status": "Failure", "message": f"{type(error).__name__}: {error}"})


def _response(hook: str, response: Response) -> Response:
    return {"apiVersion": API_VERSION, "kind": f"{hook}Response", **response}


# ------------------------------------------------------------------------------------------------------------- lifecycle


def hold(hook: str) -> Handler:
    """A handler that asks for patience while the Cluster's annotation names the hook."""

    def handler(request: Request) -> Response:
        annotations = request["cluster"]["metadata"].get("annotations") or {}
        held = hook in annotations.get(HOLD, "").split(",")
        if not held:
            return {"status": "Success", "retryAfterSeconds": 0}
        seconds = int((request.get("settings") or {}).get("retryAfterSeconds", "5"))
        return {"status": "Success", "retryAfterSeconds": seconds, "message": f"held by the annotation {HOLD}"}

    return handler


# ------------------------------------------------------------------------------------------------------------ topologies

BANNER = {
    "name": "banner",
    "required": False,
    "schema": {"openAPIV3Schema": {"type": "string", "default": "", "description": "printed by nodes before they join"}},
}


def discover_variables(request: Request) -> Response:
    """The variables that the patches below know."""
    return {"status": "Success", "variables": [BANNER]}


def generate_patches(request: Request) -> Response:
    """Let the nodes of every KubeadmConfigTemplate print the banner, if there is one."""
    banner = _value(request, "banner")
    items = []
    for item in request["items"]:
        if banner and item["object"]["kind"] == "KubeadmConfigTemplate":
            commands = item["object"]["spec"]["template"]["spec"].get("preKubeadmCommands") or []
            added = {"spec": {"template": {"spec": {"preKubeadmCommands": [*commands, f"echo {shlex.quote(banner)}"]}}}}
            items.append({"uid": item["uid"], "patchType": "JSONMergePatch", "patch": _base64(added)})
    return {"status": "Success", "items": items}


def validate_topology(request: Request) -> Response:
    """Refuse a banner that does not fit on a line."""
    if len(_value(request, "banner")) > LONGEST_BANNER:
        return {"status": "Failure", "message": f"a banner has at most {LONGEST_BANNER} characters"}
    return {"status": "Success"}


def _value(request: Request, name: str) -> str:
    return next((v["value"] for v in request.get("variables") or () if v["name"] == name), "")


def _base64(patch: Any) -> str:
    return base64.b64encode(json.dumps(patch).encode()).decode()


# -------------------------------------------------------------------------------------------------------------- upgrades


def generate_upgrade_plan(request: Request) -> Response:
    """All versions of the setting between where the Cluster is and where it is to be; workers take the last one."""
    versions = [v for v in (request.get("settings") or {}).get("kubernetesVersions", "").split(",") if v]
    start, end = request["fromControlPlaneKubernetesVersion"], request["toKubernetesVersion"]
    if end not in versions or start not in versions:
        return {"status": "Failure", "message": f"no way from {start} to {end} is known"}
    steps = versions[versions.index(start) + 1 : versions.index(end) + 1]
    workers = [] if request.get("fromWorkersKubernetesVersion", end) == end else [end]
    return {"status": "Success", "controlPlaneUpgrades": _steps(steps), "workersUpgrades": _steps(workers)}


def _steps(versions: list[str]) -> list[dict[str, str]]:
    return [{"version": version} for version in versions]


# ------------------------------------------------------------------------------------------------------ updates in place

UPDATABLE = {
    "machine": (("spec",), ["version"]),
    "machineSet": (("spec", "template", "spec"), ["version"]),
    "bootstrapConfig": (("spec",), ["preKubeadmCommands"]),
    "bootstrapConfigTemplate": (("spec", "template", "spec"), ["preKubeadmCommands"]),
}
"""Which fields of which part of a request can be changed on a running host, and where they are."""


def can_update(request: Request) -> Response:
    """A patch for every part with what we can change of it. If that does not make it what is desired, the host is replaced."""
    response: Response = {"status": "Success"}
    for part, (path, fields) in UPDATABLE.items():
        if part in request["current"] and part in request["desired"]:
            desired = _at(request["desired"][part], path)
            change: Any = {field: desired.get(field) for field in fields}
            for step in reversed(path):
                change = {step: change}
            response[f"{part}Patch"] = {"patchType": "JSONMergePatch", "patch": _base64(change)}
    return response


def _at(obj: Any, path: tuple[str, ...]) -> dict[str, Any]:
    for step in path:
        obj = obj.get(step) or {}
    return dict(obj)


class Updates:
    """Updates hosts: begins when it is asked first, and is done when it is asked again. A real one would keep that on the host."""

    def __init__(self) -> None:
        self._begun: set[tuple[str, str, str]] = set()

    def update_machine(self, request: Request) -> Response:
        """What a Machine is desired to be is brought about bit by bit; whoever asks is told how far it is."""
        machine = request["desired"]["machine"]
        key = (machine["metadata"]["namespace"], machine["metadata"]["name"], json.dumps(machine["spec"], sort_keys=True))
        if key in self._begun:
            self._begun.discard(key)
            return {"status": "Success", "retryAfterSeconds": 0}
        self._begun.add(key)
        seconds = int((request.get("settings") or {}).get("retryAfterSeconds", "5"))
        return {
            "status": "Success",
            "retryAfterSeconds": seconds,
            "message": f"updating to {machine['spec'].get('version', 'the new spec')}",
        }


# ----------------------------------------------------------------------------------------------------------- all of it


def example() -> Extension:
    """The extension that this file is about."""
    extension = Extension()
    for hook in HELD:
        extension.add(f"hold-{hook.lower()}", hook, hold(hook))
    extension.add("initialized", "AfterControlPlaneInitialized", lambda request: {"status": "Success"}, failure_policy="Ignore")
    extension.add("variables", "DiscoverVariables", discover_variables)
    extension.add("patch", "GeneratePatches", generate_patches)
    extension.add("validate", "ValidateTopology", validate_topology)
    extension.add("plan", "GenerateUpgradePlan", generate_upgrade_plan)
    extension.add("can-update-machine", "CanUpdateMachine", can_update)
    extension.add("can-update-machineset", "CanUpdateMachineSet", can_update)
    extension.add("update-machine", "UpdateMachine", Updates().update_machine, timeout_seconds=30)
    return extension


def serve(extension: Extension, host: str, port: int, certificate: str, key: str) -> ThreadingHTTPServer:
    """A server that is bound and not started yet: call `serve_forever`, and `shutdown` from elsewhere."""

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > LARGEST:
                self.send_error(413)
                return
            response = extension.answer(self.path.partition("?")[0], self.rfile.read(length))
            if response is None:
                self.send_error(404)
                return
            body = json.dumps(response).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged: they carry whole objects."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer((host, port), Requests)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An example of a runtime extension.")
    parser.add_argument("--host", default="")
    parser.add_argument("--port", type=int, default=9443)
    parser.add_argument("--certificate", required=True, help="file of PEM")
    parser.add_argument("--key", required=True, help="file of PEM")
    given = parser.parse_args()
    serve(example(), given.host, given.port, given.certificate, given.key).serve_forever()
