"""The page in a real browser: it renders, it follows what happens, it can be used with the keyboard alone, and nothing goes wrong on the way.

Without a browser these tests are skipped, and the run says so. CLUSTERWRIGHT_PICTURES=FOLDER has them leave pictures there.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from cli.conftest import Run, run_in, start, stop
from clusterwright.api.core import Cluster, MachineDeployment
from clusterwright.api.infrastructure import DevMachine, DevMachineTemplate
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli import connect
from clusterwright.inmemory.faults import FAULT
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from dashboard.conftest import Served
from support.browser import Page, browser, find

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="NO BROWSER: the web view is NOT tested; install chromium (tests/README.md)")
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>'\"&lt;b&gt;\u202e"


class Plane:
    """A plane in a folder, as a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: Run = run_in(folder)

    def link(self) -> str:
        """The way in that was printed last."""
        return re.findall(r"https://\S+#token=\S+", (self.folder / "out").read_text())[-1]

    def with_link(self) -> Plane:
        """Itself, as soon as there is a way in."""
        deadline = time.monotonic() + 600  # a net, not a measurement
        while "#token=" not in (self.folder / "out").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return self

    @asynccontextmanager
    async def client(self) -> AsyncIterator[RestClient]:
        connection = Kubeconfig.load([self.folder / ".clusterwright" / "kubeconfig"]).resolve()
        async with connect.connected(connection) as client:
            yield client


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("plane")
    process = start(folder, "--in-memory")
    try:
        yield Plane(folder).with_link()
    finally:
        stop(process)


AXE = f"{(files('axe_core_python') / 'axe.min.js').read_text()};0"


async def assert_accessible(page: Page) -> None:
    """axe-core finds nothing on the page as it is shown now."""
    if not await page.run("Boolean(window.axe)"):
        await page.run(AXE)
    wanted = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
    said = await page.run(
        f"axe.run(document, {wanted}).then(r => r.violations.map(v => `${{v.id}}: ${{v.nodes.map(n => n.html).join()}}`))"
    )
    assert said == []


@asynccontextmanager
async def page_of(plane: Plane | Served, folder: Path) -> AsyncIterator[Page]:
    assert PROGRAM is not None
    async with browser(PROGRAM, folder / "profile") as page:
        await page.open(plane.link())
        await page.until("document.getElementById('connection').textContent === 'live'")
        yield page
        assert page.complaints == []
        address = plane.link().partition("/dashboard/")[0]
        assert {u for u in page.requested if not u.startswith(f"{address}/dashboard/")} <= {"about:blank"}


async def assert_all_have_names(page: Page) -> None:
    """Whatever can be used says to a screen reader what it is."""
    spoken = {"button", "link", "textbox", "searchbox", "tab", "treeitem", "checkbox", "grid", "tree", "tabpanel"}
    nodes = (await page.call("Accessibility.getFullAXTree"))["nodes"]
    used = [n for n in nodes if not n.get("ignored") and n.get("role", {}).get("value") in spoken]
    assert len(used) > 5
    assert [n for n in used if not n.get("name", {}).get("value")] == []


async def look_at_every_part(page: Page) -> None:
    """Look at everything there is to see of the chosen object, with single keys."""
    await page.press("d")
    await page.until("document.querySelector('#part dl')?.textContent.includes('Endpoint')")
    await page.press("y")
    await page.until("document.querySelector('#part pre')?.textContent.includes('kind: Cluster')")
    assert (await page.run("location.hash")).endswith("?part=yaml")
    await assert_accessible(page)
    await page.press("e")
    await page.until("document.querySelector('#part')?.textContent.includes('no Events') || document.querySelector('#part .timeline')")
    await page.press("?")
    await page.until("document.querySelector('dialog[open] kbd')")
    await assert_accessible(page)
    await page.press("Escape")
    await page.until("!document.querySelector('dialog[open]')")
    await page.press("c")
    await page.until("document.querySelector('#part table')")
    await assert_accessible(page)


def rows(state: str) -> str:
    return f"[...document.querySelectorAll('#fleet .body .row')].some(r => r.dataset.key === 'default/web' && r.textContent.includes('{state}'))"


async def test_a_cluster_is_followed_from_its_making_to_its_end(plane: Plane, tmp_path: Path) -> None:
    async with page_of(plane, tmp_path) as page:
        made = await asyncio.to_thread(plane.run, "create", "cluster", "web")
        assert made.returncode == 0, made.stderr
        await page.until(rows(""))
        await page.until(rows("Fine"))

        await assert_all_have_names(page)
        # with the keyboard alone: to the list, into the cluster, down the tree, to a condition, and its table
        await page.run("document.getElementById('filter').focus()")
        for _ in range(24):
            await page.press("Tab")
            if await page.run("document.activeElement.getAttribute('role') === 'row'"):
                break
        await page.press("Enter")
        await page.until("document.querySelector('[role=treeitem][aria-selected=true]')")
        assert await page.run("location.hash") == "#/default/web"
        for _ in range(12):
            if await page.run("document.activeElement.getAttribute('role') === 'treeitem'"):
                break
            await page.press("Tab")
        await page.press("ArrowDown", "ArrowDown")
        assert await page.run("document.activeElement.dataset.id") == "KubeadmControlPlane/default/web"
        await page.press("ArrowLeft")
        assert await page.run("document.activeElement.getAttribute('aria-expanded')") == "false"
        await page.press("Home", "Enter")
        assert await page.run("document.activeElement.dataset.condition") == "Available"
        await page.press("Enter")
        await page.until("document.querySelector('#why tr.fired')")
        assert await page.run("document.activeElement.id") == "why"
        fired = await page.run("document.querySelector('#why tr[aria-current=true] th').textContent")
        assert fired == "available"
        await assert_all_have_names(page)

        # what is chosen is in the address
        assert await page.run("location.hash") == "#/default/web"
        await page.run("document.querySelector('[role=treeitem][data-id=\"KubeadmControlPlane/default/web\"]').click()")
        assert await page.run("location.hash") == "#/default/web?object=KubeadmControlPlane%2Fdefault%2Fweb"

        await page.press("Home")
        await look_at_every_part(page)

        await page.run("document.getElementById('tab-objects').focus()")
        await page.press("ArrowRight")
        await page.until("document.querySelectorAll('#timeline li').length > 20")
        await assert_accessible(page)
        await page.press("ArrowRight")
        await page.until("document.querySelectorAll('#waterfall .lane').length >= 2")
        assert await page.run("document.querySelector('#waterfall h3').textContent.startsWith('Bring-up')")
        await assert_accessible(page)
        await page.run("document.getElementById('theme').click()")
        assert await page.run("document.documentElement.dataset.theme") == "dark"

        await assert_accessible(page)

        # what happens elsewhere shows here, by itself
        async with plane.client() as client:
            await client.patch(Cluster, ObjectKey("default", "web"), {"spec": {"paused": True}})
        await page.until("document.getElementById('verdict').textContent.includes('Waiting')")
        await page.until("document.getElementById('news').textContent.includes('web is Waiting now')")
        async with plane.client() as client:
            await client.patch(Cluster, ObjectKey("default", "web"), {"spec": {"paused": None}})
        await page.until("document.getElementById('verdict').textContent.includes('Fine')")
        gone = await asyncio.to_thread(plane.run, "delete", "cluster", "web")
        assert gone.returncode == 0, gone.stderr
        await page.until("document.getElementById('verdict').textContent.includes('not found')")


async def test_texts_of_objects_are_not_parsed_as_markup(plane: Plane, tmp_path: Path) -> None:
    cluster, *_ = samples.cluster("hostile", has_control_plane_object=True)
    cluster["spec"]["paused"] = True
    condition: Json = {
        "type": "Available",
        "status": "False",
        "reason": "Hostile",
        "message": HOSTILE,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    event: Json = {"reason": HOSTILE, "message": HOSTILE, "type": "Warning", "lastTimestamp": "2026-01-01T00:00:00Z"}
    event["involvedObject"] = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "namespace": "default", "name": "hostile"}
    async with plane.client() as client:
        await client.create(cluster)
        await client.patch(Cluster, ObjectKey("default", "hostile"), {"status": {"conditions": [condition]}}, subresource="status")
        await client.create({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "hostile.1", "namespace": "default"}, **event})
    async with page_of(plane, tmp_path) as page:
        await page.until("document.querySelector('[data-key=\"default/hostile\"]')")
        await page.run("location.hash = '#/default/hostile'")
        await page.until("document.querySelector('#detail')?.textContent.includes('onerror')")
        assert HOSTILE in await page.run("document.querySelector('#detail').textContent")
        await page.run("document.getElementById('tab-timeline').click()")
        await page.until("document.querySelector('#timeline')?.textContent.includes('onerror')")
        await page.run(f"location.hash = '#/' + encodeURIComponent({HOSTILE!r}) + '/x'")
        await page.until("document.getElementById('verdict')?.textContent.includes('not found')")

        assert await page.run("document.querySelectorAll('main img, main script, iframe, object, b').length") == 0
        assert "hacked" not in await page.run("document.title")


async def test_a_link_works_once(plane: Plane, tmp_path: Path) -> None:
    assert PROGRAM is not None
    used = plane.link()
    async with page_of(plane, tmp_path) as page:
        assert "token" not in await page.run("location.href")
    async with browser(PROGRAM, tmp_path / "other") as page:
        await page.open(used)
        await page.until("document.querySelector('[role=alert]')?.textContent.includes('already been used')")


async def test_a_thousand_clusters_are_a_list_of_those_in_sight(served: Served, tmp_path: Path) -> None:
    served.server.ensure(samples.cluster(f"c{n}", has_control_plane_object=True)[0] for n in range(999))
    client = RestClient(InProcessTransport(served.server))
    async with page_of(served, tmp_path) as page:
        await page.until("document.getElementById('count').textContent === '1000'")
        assert await page.run("document.querySelectorAll('#fleet .body .row').length") < 60
        assert await page.run("document.getElementById('fleet').getAttribute('aria-rowcount')") == "1001"
        await page.run("document.querySelector('#fleet .body .row[tabindex=\"0\"]').focus()")
        await page.press("End")
        assert await page.run("document.activeElement.getAttribute('aria-rowindex')") == "1001"
        await page.press("Home", "ArrowDown")
        assert await page.run("document.activeElement.getAttribute('aria-rowindex')") == "3"

        await page.run("{ const f = document.getElementById('filter'); f.value = 'c77'; f.dispatchEvent(new Event('input')); }")
        await page.until("document.getElementById('count').textContent === '11 of 1000'")
        await client.delete(Cluster, ObjectKey("default", "c770"))
        await page.until("document.getElementById('count').textContent === '10 of 999'")

        # a filter can be kept, and forgotten
        await page.run("document.getElementById('save').click()")
        await page.run("{ const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); }")
        await page.run("document.querySelector('.saved .chip').click()")
        await page.until("document.getElementById('count').textContent === '10 of 999'")
        await assert_accessible(page)
        await page.run("document.querySelector('.saved .forget').click()")
        assert await page.run("document.querySelectorAll('.saved').length") == 0

        # what is chosen is in the address, and the address alone leads there
        assert await page.run("location.hash") == "#/?q=c77"
        await page.run("document.querySelector('[data-sort=cluster] button').click()")
        await page.run("document.querySelector('[data-sort=cluster] button').click()")
        assert await page.run("location.hash") == "#/?q=c77&sort=cluster&down=1"
        assert await page.run("document.querySelector('#fleet .body .row[aria-rowindex=\"2\"]').dataset.key") == "default/c779"
        assert await page.run("document.querySelector('[data-sort=cluster]').getAttribute('aria-sort')") == "descending"
        await page.run("location.hash = '#/?q=namespace%3Anowhere'")
        await page.until("document.getElementById('empty')?.textContent.includes('No cluster fits the filter')")
        await page.run("document.querySelector('#empty button').click()")
        await page.until("document.getElementById('count').textContent === '999'")
        assert await page.run("location.hash") == "#/"
        await assert_all_have_names(page)


async def test_rollouts_are_drawn_apart_from_the_bring_up(served: Served, tmp_path: Path) -> None:
    def row(kind: str, created: str, ready: str | None, version: str = "") -> Json:
        steps = [{"step": "Ready", "place": 3, "from": f"2026-01-01T{created}Z", "to": ready and f"2026-01-01T{ready}Z", "why": ""}]
        return {"kind": kind, "name": created, "created": f"2026-01-01T{created}Z", "steps": steps, "version": version, "lost": []}

    rows = [
        row("Cluster", "00:00:00", "00:02:00"),
        row("Machine", "00:00:01", "00:02:00", "v1.34.1"),
        row("Machine", "00:02:30", "00:03:30", "v1.34.1"),
        row("Machine", "09:00:00", "09:02:00", "v1.35.0"),
        row("Machine", "12:00:00", None, "v1.35.0"),
    ]
    async with page_of(served, tmp_path) as page:
        draw = f"import('./waterfall.js').then(m => {{ const d = document.createElement('div'); m.drawWaterfall(d, {json.dumps(rows)});"
        titles = await page.run(f"{draw} return [...d.querySelectorAll('h3')].map(h => h.firstChild.textContent); }})")
        lanes = await page.run(f"{draw} return [...d.querySelectorAll('[role=table]')].map(t => t.children.length); }})")

    assert titles == ["Machines that were added or replaced", "Rollout of v1.35.0", "Bring-up"]
    assert lanes == [1, 1, 3]


async def test_the_progress_of_an_upgrade_is_shown_while_it_lasts(served: Served, tmp_path: Path) -> None:
    def pool(*versions: tuple[str, int]) -> Json:
        found = [{"version": v, "replicas": n} for v, n in versions]
        return {"id": "x", "kind": "MachineDeployment", "name": "md", "target": "v1.35.0", "versions": found, "upgradePlan": []}

    async with page_of(served, tmp_path) as page:
        draw = "import('./facts.js').then(m => {{ const c = document.createElement('div'); m.progress(c, {}); return c.hidden ? '' : c.textContent; }})"
        moving = await page.run(draw.format(json.dumps([pool(("v1.34.1", 2), ("v1.35.0", 1))])))
        done = await page.run(draw.format(json.dumps([pool(("v1.35.0", 3))])))

    assert moving.startswith("Upgrade to v1.35.0")
    assert "1 of 3" in moving
    assert "2 × v1.34.1, 1 × v1.35.0" in moving
    assert done == ""


async def test_the_end_of_a_session_is_shown_with_the_way_back(served: Served, tmp_path: Path) -> None:
    async with page_of(served, tmp_path) as page:
        await page.until("document.getElementById('count').textContent === '1'")
        served.clock.passed = 13 * 3600
        served.server.ensure(samples.cluster("later", has_control_plane_object=True)[:1])
        await page.until("document.querySelector('[role=alert]')?.textContent.includes('clusterwright web')")
        assert await page.run("document.getElementById('connection').textContent") == "not connected"
        await assert_accessible(page)


async def test_an_empty_plane_says_what_to_do(served: Served, tmp_path: Path) -> None:
    await RestClient(InProcessTransport(served.server)).patch(Cluster, ObjectKey("default", "c"), {"metadata": {"finalizers": None}})
    await RestClient(InProcessTransport(served.server)).delete(Cluster, ObjectKey("default", "c"))
    async with page_of(served, tmp_path) as page:
        await page.until("document.getElementById('empty')?.textContent.includes('clusterwright create cluster')")


@pytest.mark.skipif(
    "CLUSTERWRIGHT_PICTURES" not in os.environ, reason="pictures are made when asked for: CLUSTERWRIGHT_PICTURES=docs/pictures"
)
async def test_pictures_of_a_fleet_in_trouble(plane: Plane, tmp_path: Path) -> None:
    folder = Path(os.environ["CLUSTERWRIGHT_PICTURES"])
    names = ("shop", "billing", "search", "search-staging", "mail", "archive")
    for name in names:
        made = await asyncio.to_thread(plane.run, "create", "cluster", name, "--worker-machines", "2", "--wait")
        assert made.returncode == 0, made.stderr
    async with plane.client() as client:
        await client.delete(DevMachineTemplate, ObjectKey("default", "shop-md-0"))
        await client.patch(MachineDeployment, ObjectKey("default", "shop-md-0"), {"spec": {"replicas": 4}})
        sick = next(m for m in await client.list(DevMachine, namespace="default") if m.metadata.name.startswith("billing-md-0"))
        await client.patch(DevMachine, sick.key, {"metadata": {"annotations": {FAULT: "kubelet-stops"}}})
        await client.patch(Cluster, ObjectKey("default", "archive"), {"spec": {"paused": True}})
    async with page_of(plane, tmp_path) as page:
        await page.call("Emulation.setDeviceMetricsOverride", width=1180, height=480, deviceScaleFactor=1, mobile=False)
        for name, state in (("shop", "Broken"), ("billing", "Broken"), ("archive", "Waiting"), ("mail", "Fine")):
            await page.until(rows(state).replace("default/web", f"default/{name}"))
        await page.picture(folder / "fleet.png")
        await page.call("Emulation.setDeviceMetricsOverride", width=1180, height=660, deviceScaleFactor=1, mobile=False)
        await page.run("location.hash = '#/default/shop'")
        await page.until("document.querySelector('[data-id=\"MachineDeployment/default/shop-md-0\"]')")
        await page.run("document.querySelector('[data-id=\"MachineDeployment/default/shop-md-0\"]').click()")
        await page.run("document.querySelector('[data-condition=ScalingUp]').click()")
        await page.until("document.querySelector('#why tr.fired')")
        await page.run("document.getElementById('main').scrollTop = 0")
        await page.picture(folder / "cluster.png")
        await page.run("document.getElementById('theme').click()")
        await page.run("location.hash = '#/default/mail/waterfall'")
        await page.until("document.querySelectorAll('#waterfall .lane').length >= 4")
        await page.call("Emulation.setDeviceMetricsOverride", width=1180, height=440, deviceScaleFactor=1, mobile=False)
        await page.picture(folder / "provisioning.png")
