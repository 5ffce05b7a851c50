"""Drives Chromium by its DevTools protocol over two pipes: nothing beside the browser itself is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.patience import HANG_SECONDS

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Set to 1 by CI after it has installed one: from then on its absence is a failure.
REQUIRED_VARIABLE: Final = "HEADRACE_CHROMIUM_REQUIRED"
# Once, as the root of a container, and without files in /dev/shm, which is small there.
_OPTIONS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "about:blank",
)
_SECONDS: Final = 60.0


def program() -> str | None:
    """The path of a Chromium, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name)) is not None), None)


@dataclass
class Seen:
    """What a page has done: messages of its console and of the browser about it, and addresses that it asked for."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class Browser:
    """A browser of its own with an empty profile; ends with the block that it is used in."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-")
        commands_out, commands_in = os.pipe()
        answers_out, answers_in = os.pipe()
        # The browser reads from 3 and writes to 4, whatever numbers the pipes have here.
        script = f'exec "$0" "$@" 3<&{commands_out} 4>&{answers_in}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, path, *_OPTIONS[:-1], f"--user-data-dir={self._profile.name}", _OPTIONS[-1]],
            pass_fds=(commands_out, answers_in),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        self._commands = os.fdopen(commands_in, "wb", buffering=0)
        self._answers = os.fdopen(answers_out, "rb")
        self._buffer = b""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._commands.close()
        self._answers.close()
        shutil.rmtree(self._profile.name, ignore_errors=True)
        self._profile._finalizer.detach()  # type: ignore[attr-defined]

    @contextmanager
    def page(
        self,
        path: Path,
        *,
        width: int,
        height: int = 1_000,
        media: str = "screen",
        scheme: str = "light",
        script: bool = True,
    ) -> Iterator[Page]:
        """A file, shown in a window of that size. `scheme`: light or dark; `media`: screen or print."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.call("Emulation.setEmulatedMedia", {"media": media, "features": features})
        page.call("Emulation.setScriptExecutionDisabled", {"value": not script})
        page.open(path)
        try:
            yield page
        finally:
            self.call("Target.closeTarget", {"targetId": target})

    def call(
        self,
        method: str,
        parameters: Mapping[str, Any] | None = None,
        session: str | None = None,
        seen: Seen | None = None,
    ) -> dict[str, Any]:
        """Asks, and waits for the answer."""
        self._number += 1
        own = {"id": self._number, "method": method, "params": dict(parameters or {})}
        self._commands.write(json.dumps({**own, **({"sessionId": session} if session else {})}).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return dict(message["result"])
            if seen is not None:
                _note(message, seen)

    def wait(self, event: str, seen: Seen) -> None:
        """Waits for an event."""
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            message = self._next()
            _note(message, seen)
            if message.get("method") == event:
                return
        raise AssertionError(f"no {event}")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers.fileno(), 1 << 20)
            if not part:
                raise AssertionError("Chromium has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


class Page:
    """One page in the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.seen = Seen()

    def call(self, method: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A command of the protocol."""
        return self._browser.call(method, parameters, self._session, self.seen)

    def open(self, path: Path) -> None:
        """Loads a file and waits until it is there."""
        self.call("Page.navigate", {"url": path.absolute().as_uri()})
        self._browser.wait("Page.loadEventFired", self.seen)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript; the protocol's own scripts run even where those of pages do not."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def picture(self, path: Path, *, whole: bool = True, clip: Mapping[str, float] | None = None) -> None:
        """A PNG of the page, or of a part of it."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        if clip is not None:
            options["clip"] = {"scale": 1, **clip}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", options)["data"]))

    def pdf(self, path: Path) -> None:
        """The page as it is printed."""
        data = self.call("Page.printToPDF", {"printBackground": False, "preferCSSPageSize": True})["data"]
        path.write_bytes(base64.b64decode(data))


def _note(message: Mapping[str, Any], seen: Seen) -> None:
    parameters = message.get("params", {})
    match message.get("method"):
        case "Runtime.exceptionThrown":
            seen.messages.append(str(parameters["exceptionDetails"]))
        case "Runtime.consoleAPICalled":
            seen.messages.append(str(parameters["args"]))
        case "Log.entryAdded":
            seen.messages.append(str(parameters["entry"]["text"]))
        case "Network.requestWillBeSent":
            seen.requests.append(str(parameters["request"]["url"]))
