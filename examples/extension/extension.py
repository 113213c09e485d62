"""A runtime extension in Python, with nothing but the standard library.

    python extension.py --port 9443 --certificate tls.crt --key tls.key

It holds back what the annotation `example.com/hold` of a Cluster names, for example `BeforeClusterUpgrade,BeforeClusterDelete`, and looks
again after the number of seconds in the handler's setting `retryAfterSeconds`. A handler is a function from a request to a response; which
there are is told by Discovery, so that `extensionconfig.yaml` is all that a cluster needs to know.
"""

from __future__ import annotations

import argparse
import json
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GROUP = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
API_VERSION = GROUP.strip("/")
HOLD = "example.com/hold"
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


def example() -> Extension:
    """The extension that this file is about."""
    extension = Extension()
    for hook in ("BeforeClusterCreate", "BeforeClusterUpgrade", "BeforeClusterDelete"):
        extension.add(f"hold-{hook.lower()}", hook, hold(hook))
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
    parser = argparse.ArgumentParser(description="A runtime extension that holds Clusters back.")
    parser.add_argument("--host", default="")
    parser.add_argument("--port", type=int, default=9443)
    parser.add_argument("--certificate", required=True, help="file of PEM")
    parser.add_argument("--key", required=True, help="file of PEM")
    given = parser.parse_args()
    serve(example(), given.host, given.port, given.certificate, given.key).serve_forever()
