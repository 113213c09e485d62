"""`clusterwright envtest`: programs for KUBEBUILDER_ASSETS, so that test suites for controllers in Go run on our API server.

A suite that uses envtest starts `etcd` and `kube-apiserver` from that folder, and stops them at its end. Ours take the flags that envtest
gives: the API server serves in memory with the certificates of the suite, and etcd does nothing but answer that it is healthy.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from urllib.parse import urlsplit

PROGRAMS = ("etcd", "kube-apiserver")
_HEALTHY = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\nConnection: close\r\n\r\n{"health":"true"}'


def run(arguments: argparse.Namespace) -> int:
    """Write the programs, and print their folder. Return 0, or 1 if the folder cannot be written."""
    folder: Path = arguments.folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            file = folder / program
            file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m clusterwright.cli.envtest {program} "$@"\n')
            file.chmod(0o755)
    except OSError as error:
        print(f"clusterwright envtest: {folder}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


def main(argv: Sequence[str]) -> int:
    """Run as one of the programs until SIGTERM or SIGINT, and return the exit status."""
    program, *flags = argv
    try:
        return asyncio.run(_etcd(flags) if program == "etcd" else _api_server(flags))
    except OSError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1


async def _etcd(flags: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("etcd", allow_abbrev=False)
    parser.add_argument("--listen-client-urls", required=True)
    found, _ = parser.parse_known_args(_long(flags))
    stop = _stopped()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            writer.write(_HEALTHY)
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    urls = [urlsplit(url) for url in found.listen_client_urls.split(",")]
    servers = [await asyncio.start_server(answer, url.hostname, url.port) for url in urls]
    await stop.wait()
    for server in servers:
        server.close()
    return 0


async def _api_server(flags: Sequence[str]) -> int:
    from clusterwright.apiserver.serving import serve  # etcd starts without it, in a third of the time
    from clusterwright.apiserver.serving.tls import KeyPair

    parser = argparse.ArgumentParser("kube-apiserver", allow_abbrev=False)
    parser.add_argument("--bind-address", default="127.0.0.1")
    parser.add_argument("--secure-port", default="6443")
    parser.add_argument("--cert-dir", type=Path, default=Path())
    parser.add_argument("--tls-cert-file", type=Path)
    parser.add_argument("--tls-private-key-file", type=Path)
    parser.add_argument("--client-ca-file", type=Path)
    parser.add_argument("--audit-log-path", type=Path)
    found, _ = parser.parse_known_args(_long(flags))  # others tune what ours does not have
    certificate = found.tls_cert_file or found.cert_dir / "apiserver.crt"
    key = found.tls_private_key_file or found.cert_dir / "apiserver.key"
    host = f"[{found.bind_address}]" if ":" in found.bind_address else found.bind_address
    stop = _stopped()
    options = serve.ServeOptions(
        listen=f"{host}:{found.secure_port}",
        serving=KeyPair(certificate.read_bytes(), key.read_bytes()) if certificate.exists() else None,
        client_authority=found.client_ca_file.read_bytes() if found.client_ca_file else b"",
        audit_log=found.audit_log_path,
        controllers=False,  # envtest has an API server and no controllers: nothing collects garbage there
        now=lambda: datetime.now(UTC),
        random=SystemRandom(),
    )
    try:
        running = await serve.start(options)
    except serve.BadOption as error:
        print(f"kube-apiserver: {error}", file=sys.stderr)
        return 1
    await stop.wait()
    await running.stop()
    return 0


def _long(flags: Sequence[str]) -> list[str]:
    """Return the flags with two dashes each: Go's style allows one."""
    return [flag if flag.startswith("--") or not flag.startswith("-") else f"-{flag}" for flag in flags]


def _stopped() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
