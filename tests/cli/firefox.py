"""A headless Firefox, driven through WebDriver BiDi; nothing but the standard library. It has the methods of browser.py's Chromium.

SPDX-License-Identifier: MIT
"""
import base64
import ctypes
import json
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


class Firefox:
    """One page. Errors of its scripts are collected in `errors`."""
    schemes = ("light",)  # BiDi has no command that prefers the other

    def __init__(self, program, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.downloads = os.path.join(self.profile.name, "downloads")
        os.mkdir(self.downloads)
        preferences = {**PREFERENCES, "browser.download.dir": self.downloads}
        with open(os.path.join(self.profile.name, "user.js"), "w", encoding="utf-8") as file:
            file.writelines(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--profile", self.profile.name, "--remote-debugging-port=0", "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        self.next_id, self.errors, self.requests = 0, [], []
        self.socket = self.connect()
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=EVENTS)
        self.context = self.call("browsingContext.getTree", maxDepth=0)["contexts"][0]["context"]
        self.resize(width, height)

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

    def take_event(self, message):
        about = message.get("params", {})
        if message.get("method") == "log.entryAdded" and about["level"] == "error":
            self.errors.append(about["text"])
        elif message.get("method") == "network.beforeRequestSent" and about["context"] == self.context:
            self.requests.append(about["request"]["url"])

    def call(self, method, seconds=60, **parameters):
        self.next_id += 1
        self.socket.send(json.dumps({"id": self.next_id, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.receive(seconds))
            if answer.get("id") == self.next_id:
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
        self.call("script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}")

    def resize(self, width, height, scale=1):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height}, devicePixelRatio=scale)

    def prefer(self, scheme):
        assert scheme in self.schemes

    def save_downloads(self, folder):
        """Firefox keeps its folder, so that the one asked for becomes a name of it."""
        if not os.path.islink(self.downloads):
            os.rmdir(self.downloads)
        else:
            os.unlink(self.downloads)
        os.symlink(folder, self.downloads)

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
