"""A headless Chromium, driven through the DevTools protocol over a pipe; nothing but the standard library.

SPDX-License-Identifier: MIT
"""
import base64
import fcntl
import json
import multiprocessing.util
import os
import select
import shutil
import subprocess
import tempfile
import time

KEYS = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Home": 36, "End": 35}


def find_chromium():
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Process:
    """The browser itself. It needs seconds to start, and so stays until the tests that follow have had it."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()
        # DevTools reads descriptor 3 and writes descriptor 4. Everything it talks to is on this machine.
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe"]
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_child, from_child)]  # neither of them is 3 or 4
        self.process = subprocess.Popen([program, *flags, "about:blank"], close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)))
        for end in ends:
            os.close(end)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.next_id = b"", 0
        multiprocessing.util.Finalize(None, self.close, exitpriority=10)  # of a worker, too

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.profile.cleanup()

    def read_message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.read_end, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError(f"the browser said nothing for {seconds} s (or ended: {self.process.poll()})")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)


class Browser:
    """One page, with cookies, storage and caches of its own. Errors of its scripts are collected in `errors`."""
    schemes = ("light", "dark")
    shared = None  # the process of all pages

    def __init__(self, program, width=1280, height=900):
        if Browser.shared is None or Browser.shared.process.poll() is not None:
            Browser.shared = Process(program)
        self.errors, self.requests, self.events, self.session = [], [], [], ""
        self.context = self.call("Target.createBrowserContext", of_page=False)["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=self.context, of_page=False)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True, of_page=False)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def close(self):
        self.call("Target.disposeBrowserContext", browserContextId=self.context, of_page=False)

    def take_event(self, message):
        if message.get("sessionId") != self.session:
            return  # of a page that is closed
        self.events.append(message.get("method"))
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif message.get("method") == "Runtime.consoleAPICalled" and message["params"]["type"] in ("error", "assert"):
            self.errors.append(str(message["params"]["args"]))
        elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])

    def call(self, method, seconds=60, of_page=True, **parameters):
        self.shared.next_id += 1
        message = {"id": self.shared.next_id, "method": method, "params": parameters}
        if of_page:
            message["sessionId"] = self.session
        os.write(self.shared.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.shared.read_message(seconds)
            if answer.get("id") == self.shared.next_id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.take_event(answer)

    # ---- what a person does

    def open(self, url):
        for place in ("about:blank", url):  # from the page itself an address would only move within it
            self.requests, self.events = [], []
            self.call("Page.navigate", url=place)
            while "Page.loadEventFired" not in self.events:
                self.take_event(self.shared.read_message(60))

    def before_page(self, script):
        """A script that runs in every page before its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def pick_folder(self, selector, folder):
        """What the dialog of a file input answers."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(folder)])

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def touch(self, on):
        """A finger instead of a mouse: what is `pointer: coarse` to a style sheet."""
        self.call("Emulation.setTouchEmulationEnabled", enabled=on, maxTouchPoints=1)

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.frame()

    def save_downloads(self, folder):
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder, browserContextId=self.context, of_page=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def frame(self):
        """Two frames later everything that was asked for has been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.frame()

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.frame()

    def press(self, key, shift=False):
        code = KEYS.get(key) or ord(key.upper())
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        if len(key) == 1 or key == "Enter":
            event["text"] = key if len(key) == 1 else "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.frame()

    def screenshot(self, path, full=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]))
