"""A real browser, spoken to in its own DevTools protocol: enough to look, press keys, and hear what the console says."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from support.patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page. `complaints` are console errors, uncaught exceptions and refused loads, in the order of their coming."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self._socket = socket
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                future = self._answers.pop(said["id"])
                if "error" in said:
                    future.set_exception(RuntimeError(str(said["error"])))
                else:
                    future.set_result(said["result"])
            elif said["method"] == "Runtime.exceptionThrown":
                self.complaints.append(str(said["params"]["exceptionDetails"]))
            elif said["method"] == "Runtime.consoleAPICalled" and said["params"]["type"] in {"error", "assert"}:
                self.complaints.append(str(said["params"]["args"]))
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.complaints.append(str(said["params"]["entry"]))
            elif said["method"] == "Network.requestWillBeSent":
                self.requested.append(said["params"]["request"]["url"])

    async def call(self, method: str, **parameters: Any) -> Any:
        """A command of the protocol, and its answer."""
        number = next(self._numbers)
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(future, PATIENCE)

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.call("Page.navigate", url=url)

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The value of an expression as soon as it is true: looked at after every change of the document."""
        waiting = f"""new Promise(done => {{
            const look = () => {{ let v = null; try {{ v = {expression}; }} catch (e) {{ v = null; }} if (v) {{ done(v); return true; }} return false; }};
            if (look()) return;
            const watch = new MutationObserver(() => look() && watch.disconnect());
            watch.observe(document, {{subtree: true, childList: true, characterData: true, attributes: true}});
        }})"""
        try:
            return await asyncio.wait_for(self.run(waiting), PATIENCE)
        except TimeoutError:
            shown = await self.run("document.body.innerText")
            raise AssertionError(f"never true: {expression}\n{shown}\n{self.complaints}") from None

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other, as a person would."""
        codes = {
            "Enter": 13,
            "Tab": 9,
            "ArrowUp": 38,
            "ArrowDown": 40,
            "ArrowLeft": 37,
            "ArrowRight": 39,
            "Home": 36,
            "End": 35,
            "Escape": 27,
        }
        for key in keys:
            code = codes.get(key) or ord(key.upper())
            text = "\r" if key == "Enter" else key if len(key) == 1 else ""
            told = {"key": key, "code": key, "windowsVirtualKeyCode": code} | ({"text": text} if text else {})
            await self.call("Input.dispatchKeyEvent", type="keyDown", **told)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    async def picture(self, path: Path) -> None:
        """What is seen, as a PNG."""
        path.write_bytes(base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"]))

    async def close(self) -> None:
        """Stop listening."""
        await self._socket.close()
        await self._reading


@asynccontextmanager
async def browser(program: str, folder: Path, *, width: int = 1280, height: int = 800) -> AsyncIterator[Page]:
    """A fresh browser with one empty page; certificates are not looked at."""
    process = await asyncio.create_subprocess_exec(
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--ignore-certificate-errors",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
        f"--window-size={width},{height}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        announced = folder / "DevToolsActivePort"
        async with asyncio.timeout(PATIENCE):
            while not announced.exists() or "\n" not in announced.read_text():
                assert process.returncode is None, f"{program} has ended with {process.returncode}"
                await asyncio.sleep(0.05)
        port = announced.read_text().splitlines()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as listed:
                target = next(t for t in await listed.json() if t["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.call(f"{domain}.enable")
                await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
                yield page
                await page.close()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)  # its helpers with it
        await process.wait()
