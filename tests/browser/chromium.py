"""A headless Chromium driven over its DevTools pipe: nothing but Python's own library is needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """A browser with one page. Counts what must not happen: errors, and requests to the outside."""

    def __init__(self):
        program = os.environ.get("CHROMIUM") or shutil.which("chromium")
        if program is None:
            raise RuntimeError("chromium is not installed (Debian: chromium)")
        self.profile = tempfile.mkdtemp(prefix="sgdph-chromium-")
        browser_reads, self.to_browser = os.pipe()
        self.from_browser, browser_writes = os.pipe()
        # The browser takes commands on descriptor 3 and answers on 4.
        reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (browser_reads, browser_writes))
        words = [program, "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                 "--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={self.profile}"]
        if os.geteuid() == 0:
            words.append("--no-sandbox")
        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *words, "about:blank"],
                                        pass_fds=(reads, writes), stdout=self.log, stderr=self.log)
        for end in (browser_reads, browser_writes, reads, writes):
            os.close(end)
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.outside, self.loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.to_browser)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_browser)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                with open(self.log.name, errors="replace") as log:
                    raise RuntimeError("chromium ended: " + log.read()[-2000:])
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "about:")):
            self.outside.append(params["request"]["url"])
        if method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            answer = self.receive(deadline - time.monotonic())
            if answer is None:
                break
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)
        raise RuntimeError(f"{method}: no answer")

    def open(self, path, width=1280, height=900, dark=False, scripts=True, phone=False):
        """Shows a file and waits until it is loaded and drawn."""
        self.errors, self.outside, self.loaded = [], [], False
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", media="",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 60
        while not self.loaded and time.monotonic() < deadline:
            message = self.receive(1)
            if message:
                self.note(message)
        if scripts:
            self.frame()

    def frame(self):
        """Waits for the next frame, and the one after it."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def run(self, script):
        """The value of a script in the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def place(self, element):
        """Scrolls an element (a script) into the window; its middle, left, top, width and height there."""
        self.run(f"({element}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.frame()
        return self.run(f"(() => {{ const r = ({element}).getBoundingClientRect();"
                        "return {x: r.left + r.width / 2, y: r.top + r.height / 2, left: r.left, top: r.top, width: r.width, height: r.height}; })()")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
                  clickCount=0 if kind == "mouseMoved" else 1)

    def click(self, element):
        at = self.place(element)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, at["x"], at["y"])
        self.frame()

    def screenshot(self, path, whole=True):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))
