"""Drives headless Chromium over its debugging pipe with only the standard library, to inspect and screenshot pages."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    """Usage: with Browser() as b: page = b.open(url, width=1280); page.evaluate("document.title")"""

    def __init__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not program:
            raise SystemExit("error: chromium is missing (Debian: chromium)")
        to_child, self.to = os.pipe()
        self.back, from_child = os.pipe()
        self.profile = tempfile.mkdtemp()

        def pipes():  # Chromium reads commands from descriptor 3 and answers on 4
            os.dup2(to_child, 13)
            os.dup2(from_child, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
             "--force-color-profile=srgb", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.count, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self, limit):
        """Returns one message, or None after `limit` seconds."""
        end = time.monotonic() + limit
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                return None
            part = os.read(self.back, 1 << 20)
            if not part:
                raise SystemExit("error: chromium exited unexpectedly")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, limit=60, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            message = self.read(limit)
            if message is None:
                raise SystemExit(f"error: chromium gave no answer to {method} in {limit} s")
            if message.get("id") != request["id"]:
                self.events.append(message)
                continue
            if "error" in message:
                raise SystemExit(f"error: {method}: {message['error']['message']}")
            return message["result"]

    def open(self, url, width, height=900, dark=False, scale=1):
        return Page(self, url, width, height, dark, scale)


class Page:
    def __init__(self, browser, url, width, height, dark, scale):
        self.browser, self.width = browser, width
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # a page in the background draws no frames
        self.call("Page.bringToFront")
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        browser.events.clear()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")
        self.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"error: {expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, limit=20):
        end = time.monotonic() + limit
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise SystemExit(f"error: after {limit} s this is still false: {condition}")
            time.sleep(0.05)

    def errors(self):
        """Returns the console's messages so far: exceptions, errors, warnings."""
        out = []
        for e in self.browser.events:
            p = e.get("params", {})
            if e.get("method") == "Runtime.exceptionThrown":
                out.append(p["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif e.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                out.append(str([a.get("value") for a in p["args"]]))
            elif e.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                out.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))
        return out

    def overflow(self):
        """Returns the number of pixels by which the page is wider than its window."""
        return self.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key):
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def screenshot(self, path, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": self.width, "height": size["height"], "scale": 1}
        more = {"clip": clip, "captureBeyondViewport": True} if whole else {}
        png = self.call("Page.captureScreenshot", format="png", **more)["data"]
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(png))
