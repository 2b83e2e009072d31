"""A headless Firefox, driven through WebDriver BiDi; nothing but the standard library. It has the methods of browser.py's Chromium.

SPDX-License-Identifier: MIT
"""
import base64
import ctypes
import json
import multiprocessing.util
import os
import shutil
import signal
import subprocess
import tempfile
import time

from web_socket import WebSocket

# Everything that Firefox would ask of a network goes to a port of this machine where nobody listens.
PREFERENCES = {
    "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9,
    "app.update.enabled": False, "browser.shell.checkDefaultBrowser": False, "browser.aboutwelcome.enabled": False, "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False, "datareporting.healthreport.uploadEnabled": False, "toolkit.telemetry.enabled": False,
    "browser.download.useDownloadDir": True, "browser.download.folderList": 2, "browser.download.alwaysOpenPanel": False, "extensions.update.enabled": False,
}
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Tab": "\ue004"}
SHIFT = "\ue008"
PR_SET_PDEATHSIG = 1
EVENTS = ["log.entryAdded", "network.beforeRequestSent"]


def find_firefox():
    return next((path for path in map(shutil.which, ("firefox-esr", "firefox")) if path), None)


def end_with_parent():
    """Nothing tells Firefox that whoever drives it was killed, but for the kernel."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """The browser itself. It needs seconds to start, and so stays until the tests that follow have had it."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.downloads = os.path.join(self.profile.name, "downloads")
        preferences = {**PREFERENCES, "browser.download.dir": self.downloads}
        with open(os.path.join(self.profile.name, "user.js"), "w", encoding="utf-8") as file:
            file.writelines(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--profile", self.profile.name, "--remote-debugging-port=0", "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        self.next_id, self.socket = 0, self.connect()
        multiprocessing.util.Finalize(None, self.close, exitpriority=10)  # of a worker, too

    def connect(self, seconds=60):
        """Firefox writes the port that it took into its profile."""
        place, end = os.path.join(self.profile.name, "WebDriverBiDiServer.json"), time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with open(place, encoding="utf-8") as file:
                    about = json.load(file)
                return WebSocket(about["ws_host"], about["ws_port"], "/session")
            except (FileNotFoundError, json.JSONDecodeError, ConnectionRefusedError):
                time.sleep(0.05)
        raise TimeoutError(f"Firefox opened no port in {seconds} s (or ended: {self.process.poll()})")

    def close(self):
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()


class Firefox:
    """One page, with cookies, storage and caches of its own. Errors of its scripts are collected in `errors`."""
    schemes = ("light",)  # BiDi has no command that prefers the other
    shared = None  # the process of all pages

    def __init__(self, program, width=1280, height=900):
        begins = Firefox.shared is None or Firefox.shared.process.poll() is not None
        if begins:
            Firefox.shared = Process(program)
        self.errors, self.requests, self.context = [], [], None
        self.downloads = self.shared.downloads
        if begins:
            self.call("session.new", capabilities={})
            self.call("session.subscribe", events=EVENTS)
        self.place_downloads(os.mkdir)
        self.user = self.call("browser.createUserContext")["userContext"]
        self.context = self.call("browsingContext.create", type="tab", userContext=self.user)["context"]
        self.resize(width, height)

    def close(self):
        self.call("browser.removeUserContext", userContext=self.user)

    def place_downloads(self, make):
        """Firefox keeps its folder, so that another becomes a name of it."""
        if os.path.islink(self.downloads):
            os.unlink(self.downloads)
        elif os.path.exists(self.downloads):
            shutil.rmtree(self.downloads)
        make(self.downloads)

    def take_event(self, message):
        about = message.get("params", {})
        if message.get("method") == "log.entryAdded" and about["level"] == "error" and about["source"].get("context", self.context) == self.context:
            self.errors.append(about["text"])
        elif message.get("method") == "network.beforeRequestSent" and about["context"] == self.context:
            self.requests.append(about["request"]["url"])

    def call(self, method, seconds=60, **parameters):
        self.shared.next_id += 1
        self.shared.socket.send(json.dumps({"id": self.shared.next_id, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.shared.socket.receive(seconds))
            if answer.get("id") == self.shared.next_id:
                assert answer["type"] == "success", f"{method}: {answer.get('error')}, {answer.get('message')}"
                return answer["result"]
            self.take_event(answer)

    # ---- what a person does

    def open(self, url):
        for place in ("about:blank", url):  # from the page itself an address would only move within it
            self.requests = []
            self.call("browsingContext.navigate", context=self.context, url=place, wait="complete")

    def before_page(self, script):
        """A script that runs in every page before its own."""
        self.call("script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}", contexts=[self.context])

    def resize(self, width, height, scale=1):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height}, devicePixelRatio=scale)

    def prefer(self, scheme):
        assert scheme in self.schemes

    def save_downloads(self, folder):
        self.place_downloads(lambda place: os.symlink(folder, place))

    def evaluate(self, expression):
        """The value of an expression of JavaScript, as JSON has it."""
        result = self.call("script.evaluate", expression=f"(async () => JSON.stringify(await ({expression})) ?? 'null')()", target={"context": self.context},
                           awaitPromise=True)
        assert result["type"] == "success", f"{expression}: {result.get('exceptionDetails')}"
        return json.loads(result["result"]["value"])

    def frame(self):
        """Two frames later everything that was asked for has been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def act(self, kind, *actions, **about):
        self.call("input.performActions", context=self.context, actions=[{"type": kind, "id": kind, "actions": list(actions), **about}])
        self.frame()

    def move(self, x, y):
        self.act("pointer", {"type": "pointerMove", "x": round(x), "y": round(y)}, parameters={"pointerType": "mouse"})

    def click(self, x, y):
        self.move(x, y)
        self.act("pointer", {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}, parameters={"pointerType": "mouse"})

    def press(self, key, shift=False):
        value = KEYS.get(key, key)
        steps = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        if shift:
            steps = [{"type": "keyDown", "value": SHIFT}, *steps, {"type": "keyUp", "value": SHIFT}]
        self.act("key", *steps)

    def pick_folder(self, selector, folder):
        """The files of the folder: Firefox takes no folder from a protocol, so that they come without its name."""
        found = self.call("browsingContext.locateNodes", context=self.context, locator={"type": "css", "value": selector})["nodes"]
        files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if os.path.isfile(os.path.join(folder, name))]
        self.call("input.setFiles", context=self.context, element={"sharedId": found[0]["sharedId"]}, files=files)

    def screenshot(self, path, full=True):
        data = self.call("browsingContext.captureScreenshot", context=self.context, origin="document" if full else "viewport")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
