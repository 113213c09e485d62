"""`clusterwright web`: a link of the plane, and a page that is served here with the rights of the caller."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.conftest import Run, environment, run_in, running
from support.forks import program

LINK = re.compile(r"https?://127\.0\.0\.1:\d+/dashboard/#token=\S+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running(tmp_path_factory.mktemp("plane"), "--no-controllers") as folder:
        yield folder


@pytest.fixture
def plane(folder: Path) -> Run:
    return run_in(folder)


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[str]:
    """The link of a page that is served here."""
    command = [*program(), "web", "--here", *flags]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        link = LINK.search(line)
        assert link, line + str(process.stderr and process.stderr.read())
        yield link[0]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


class Browser:
    """A browser that keeps its cookie."""

    def __init__(self, link: str) -> None:
        address = urlsplit(link)
        self.host, self.port = str(address.hostname), int(address.port or 0)
        self.token = address.fragment.removeprefix("token=")
        self.cookie = ""

    def ask(self, method: str, path: str, body: str = "", *, until: str = "", **headers: str) -> tuple[int, str]:
        """Return status and body of an answer; of a stream the line with `until`."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.request(method, path, body or None, {**({"Cookie": self.cookie} if self.cookie else {}), **headers})
        answer = connection.getresponse()
        self.cookie = (answer.getheader("Set-Cookie") or self.cookie).partition(";")[0]
        text = next(line for line in map(bytes.decode, answer) if until in line) if until else answer.read().decode()
        connection.close()
        return answer.status, text


def test_the_plane_gives_a_link(plane: Run) -> None:
    first, second = plane("web"), plane("web")

    assert first.returncode == 0
    found = [LINK.search(one.stdout) for one in (first, second)]
    assert all(found)
    assert found[0] != found[1]
    assert "https://" in first.stdout


def test_a_page_is_served_here_for_whoever_has_its_link(folder: Path, plane: Run) -> None:
    assert plane("create", "cluster", "shop").returncode == 0
    with serving(folder) as link:
        browser = Browser(link)

        assert browser.ask("GET", "/dashboard/clusters")[0] == 401
        assert browser.ask("POST", "/dashboard/session", "wrong")[0] == 401
        assert browser.ask("POST", "/dashboard/link")[0] == 403
        assert browser.ask("POST", "/dashboard/session", browser.token)[0] == 204
        status, line = browser.ask("GET", "/dashboard/clusters", until="default/shop")
        assert status == 200
        assert json.loads(line.removeprefix("data: "))["set"]["default/shop"]["name"] == "shop"
        assert browser.ask("GET", "/")[0] == 302
        assert browser.ask("GET", "/api/v1/secrets")[0] == 404


def test_another_name_for_this_machine_does_not_reach_the_page(folder: Path) -> None:
    with serving(folder) as link:
        assert Browser(link).ask("GET", "/dashboard/", Host="evil.example.com")[0] == 421


def test_a_port_in_use_is_reported(folder: Path, plane: Run) -> None:
    with serving(folder) as link:
        taken = plane("web", "--here", "--port", str(urlsplit(link).port))

    assert taken.returncode == 1
    assert "in use" in taken.stderr


def test_without_a_plane_it_says_where_it_looked(alone: Run) -> None:
    assert "no kubeconfig found" in alone("web").stderr
