"""Stand-ins for the programs that Go's envtest starts, started as envtest starts them."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterwright.apiserver.serving.tls import make_authority, sign
from clusterwright.cli.main import main


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def assets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["envtest", str(tmp_path / "assets")]) == 0
    return Path(capsys.readouterr().out.strip())


class Started:
    """A program of the folder, until the test ends."""

    def __init__(self, program: Path, *flags: str) -> None:
        self.process = subprocess.Popen([str(program), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def until_it_answers(self, url: str, context: ssl.SSLContext | None = None) -> bytes:
        while True:
            assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
            try:
                with urllib.request.urlopen(url, context=context, timeout=30) as answer:
                    return bytes(answer.read())
            except OSError:
                time.sleep(0.05)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def api_server(assets: Path, tmp_path: Path) -> Iterator[tuple[Started, str, ssl.SSLContext]]:
    """The API server with certificates as envtest makes them: a serving one, and an authority for clients."""
    now, port = datetime.now(UTC), free_port()
    ours, clients = make_authority(now, "envtest"), make_authority(now, "envtest-clients")
    serving = sign(ours, now, "kube-apiserver", hosts=["127.0.0.1", "localhost"])
    (tmp_path / "apiserver.crt").write_bytes(serving.certificate)
    (tmp_path / "apiserver.key").write_bytes(serving.key)
    (tmp_path / "client-ca.crt").write_bytes(clients.certificate)
    admin = sign(clients, now, "admin", organizations=["system:masters"])
    (tmp_path / "admin.pem").write_bytes(admin.certificate + admin.key)
    context = ssl.create_default_context(cadata=ours.certificate.decode())
    context.load_cert_chain(tmp_path / "admin.pem")
    started = Started(
        assets / "kube-apiserver",
        f"--cert-dir={tmp_path}",
        f"--client-ca-file={tmp_path / 'client-ca.crt'}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--etcd-servers=http://127.0.0.1:2379",
        "--authorization-mode=RBAC",
        "-service-cluster-ip-range=10.0.0.0/24",
    )
    try:
        yield started, f"https://127.0.0.1:{port}", context
    finally:
        started.process.kill()
        started.process.communicate()


def test_the_etcd_stand_in_reports_health_and_stops(assets: Path) -> None:
    port = free_port()
    started = Started(assets / "etcd", f"--listen-client-urls=http://127.0.0.1:{port}", "--data-dir=x", "--unsafe-no-fsync=true")

    assert started.until_it_answers(f"http://127.0.0.1:{port}/health") == b'{"health":"true"}'
    assert started.stop() == 0


def test_the_api_server_takes_the_certificates_of_the_suite(api_server: tuple[Started, str, ssl.SSLContext]) -> None:
    started, url, context = api_server

    assert started.until_it_answers(f"{url}/readyz", context) == b"ok"
    assert b'"SecretList"' in started.until_it_answers(f"{url}/api/v1/secrets", context)
    assert started.stop() == 0


def test_a_port_in_use_is_reported(assets: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = subprocess.run(
            [str(assets / "kube-apiserver"), f"--secure-port={taken.getsockname()[1]}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert done.returncode == 1
    assert "Address already in use" in done.stderr or "address already in use" in done.stderr


def test_an_unwritable_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")

    assert main(["envtest", str(tmp_path / "file" / "assets")]) == 1
    assert "Not a directory" in capsys.readouterr().err
