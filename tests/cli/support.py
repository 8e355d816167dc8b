"""What the tests of the command share: a small data set, runs of the program, and how to compare two runs."""

import fcntl
import functools
import http.server
import io
import json
import os
import pty
import random
import re
import resource
import shutil
import select
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
import time
import unittest
from pathlib import Path

SGDPH = os.environ["SGDPH"]
SKIPPED = 77  # what ctest takes for a skipped test


def skip(why, may_lack=False):
    """Ends the test, or in setUpClass all of the class, aloud. A machine with CI=true is root on a Debian with the packages of
    `scripts/install-deps.sh test`: what it must have fails there, and what it `may_lack` is skipped."""
    print(f"NOT TESTED: {why}", file=sys.stderr, flush=True)
    if os.environ.get("CI") == "true" and not may_lack:
        raise AssertionError(f"CI skips nothing: {why}")
    raise unittest.SkipTest(why)


def experiment(widths=(), figures="", **settings):
    """The file of an experiment: two optimizers, at two widths if they are given, with these settings at desk scale."""
    axis = f'[[axis]]\nname = "width"\nvalues = {list(widths)}\n' if widths else ""
    run = {"model": "resnet8", "epochs": 2, "batch_size": 32, **settings}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in run.items())
    return f"""title = "Two optimizers{', two widths' if widths else ''}"
paper = "Table 9"
ranked = "opt"
{axis}[[axis]]
name = "opt"
values = ["sgdm", "sgd-ph"]
[full]
runs = 4
[full.run]
dataset = "fashion-mnist"
augment = false
epochs = 10
[desk]
runs = 1
why = "A test must be quick."
[desk.run]
{lines}{figures}"""


def write_samples(kind, folder, *numbers):
    """A small data set of a kind, by the writer of the C++ tests: images, or fashion-mnist with counts and seed."""
    subprocess.run([os.environ["SGDPH_WRITE_SAMPLES"], kind, folder, *map(str, numbers)], check=True)


def records(folder):
    return [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]


def figures(folder):
    """Every figure of a log but times and memory."""
    kept = []
    for record in records(folder):
        if record["type"] == "slowed":  # by what else the machine did
            continue
        record.pop("cost", None)
        record.pop("started", None)
        kept.append(record)
    return kept


def with_faults(under, count, **chosen):
    """The environment of a command with the library of tests/support/faults.cpp, which numbers the calls on files under a
    folder in the file `count`; chosen: call, at, error, lasting, journal, clock."""
    Path(count).unlink(missing_ok=True)
    given = {"under": under, "count": count, **chosen}
    return dict(os.environ, LD_PRELOAD=os.environ["SGDPH_FAULTS"], **{f"SGDPH_FAULTS_{k.upper()}": str(v) for k, v in given.items()})


CALLS = ["open", "write", "fsync", "rename", "mkdir", "link", "unlink", "close", "truncate", "any"]


def calls_in(count):
    """How many calls of each kind there were."""
    return dict(zip(CALLS, struct.unpack("10q", Path(count).read_bytes())))


def write_cifar100(path, train=200, test=100):
    """A small CIFAR-100 as its makers pack it."""
    rng = random.Random(7)
    with tarfile.open(path, "w:gz") as archive:
        def add(name, content):
            entry = tarfile.TarInfo("cifar-100-binary/" + name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

        for name, images in (("train.bin", train), ("test.bin", test)):
            add(name, b"".join(bytes([i % 20, i % 100]) + rng.randbytes(3072) for i in range(images)))
        add("fine_label_names.txt", b"".join(b"class%d\n" % i for i in range(100)))
    return Path(path)


class Server:
    """Files over HTTP on this machine, in pieces, so that a download can be cut off; `answer` may lie."""

    def __init__(self, files, pause=0.0, answer=None):
        outer = self
        self.files, self.requests = files, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append(self.path)
                body, start = outer.files[self.path], 0
                if self.headers.get("Range"):
                    start = int(self.headers["Range"].split("=")[1].rstrip("-"))
                headers = {"ETag": '"one"', "Content-Length": len(body) - start}
                if start:
                    headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
                status = 206 if start else 200
                if answer:
                    status, headers, body, start = answer(status, headers, body, start)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    for at in range(start, len(body), 65536):
                        self.wfile.write(body[at:at + 65536])
                        time.sleep(pause)
                except OSError:  # the other side was killed
                    pass
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Starter:
    """Starts the command as often as asked, and waits for LibTorch's beginning once: tests/support/starter.cpp."""

    NUMBER = struct.Struct("i")

    def __init__(self):
        self.spent = 0.0  # seconds of a core
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = dict(os.environ, LD_PRELOAD=os.environ["SGDPH_FAULTS"], SGDPH_STARTER=str(theirs.fileno()))
        self.lock = threading.Lock()
        self.program = subprocess.Popen([SGDPH], env=env, pass_fds=[theirs.fileno()])
        theirs.close()

    def run(self, command, cwd, env, timeout):
        """As subprocess.run."""
        answers, theirs = os.pipe()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, open(answers, "rb", buffering=0) as answers:
            words = [cwd, len(command), *command, *(f"{name}={value}" for name, value in env.items())]
            packet = b"".join(os.fsencode(word if isinstance(word, bytes) else str(word)) + b"\0" for word in words)
            with self.lock:
                socket.send_fds(self.socket, [packet], [0, out.fileno(), errors.fileno(), theirs])
            os.close(theirs)
            number = lambda: self.NUMBER.unpack(answers.read(self.NUMBER.size))[0]
            child = number()
            if not select.select([answers], [], [], timeout)[0]:
                os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, timeout)
            status = number()
            self.spent += number() / 1000
            texts = []
            for file in (out, errors):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status), *texts)


@functools.lru_cache(None)
def starter():
    return Starter()


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="sgdph-cli-"))
        cls.data = cls.root / "fashion"
        write_samples("fashion-mnist", cls.data, 256, 64, 1)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=self.root))

    def small(self, opt="sgdm", epochs=2, output=None, *extra):
        """The options of a run of seconds."""
        words = ["train", "--dataset", "fashion-mnist", "--data-path", str(self.data), "--width", "0.5", "-b", "32"]
        words += ["--opt", opt, "--epochs", str(epochs), "--threads", "1", *map(str, extra)]
        return words + (["--output-dir", str(output)] if output else [])

    def command(self, *words):
        return [SGDPH, *(word if isinstance(word, bytes) else str(word) for word in words)]

    def run_sgdph(self, *words, cwd=None, env=None, timeout=300, **options):
        """Runs the command to its end. Where nothing but its words, folder and faults are chosen, by the starter."""
        command, cwd, env = self.command(*words), cwd or self.folder, env or dict(os.environ)
        chosen = {name for name in env.keys() | os.environ.keys() if env.get(name) != os.environ.get(name)}
        plain = command[0] == SGDPH and "SGDPH_FAULTS" in os.environ and not options
        if plain and all(name == "LD_PRELOAD" or name.startswith("SGDPH_FAULTS_") for name in chosen):
            return starter().run(command, cwd, env, timeout)
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, cwd=cwd, env=env, **options)

    def succeed(self, *words, **options):
        done = self.run_sgdph(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refuse(self, *words, says, writes_nothing=True, **options):
        """One line on standard error with these words, exit code 2, and nothing written."""
        before = sorted(str(p) for p in self.folder.rglob("*"))
        done = self.run_sgdph(*words, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("sgdph: "), done.stderr)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        if writes_nothing:
            self.assertEqual(before, sorted(str(p) for p in self.folder.rglob("*")))
        return done

    def stop_at_a_checkpoint(self, words, folder):
        """Starts the command, presses Ctrl-C (all its processes get it) when a run below the folder has a checkpoint, and
        gives what it says; it must end as interrupted."""
        child = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + 120
        while not list(folder.glob("*/*.ckpt")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, errors)
        return errors

    def on_terminal(self, words, interrupt_at=None):
        """Runs the command with a terminal for standard error, and presses Ctrl-C when this expression is on it. Gives
        the exit code, standard output, and the bytes that were shown."""
        parent, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))  # wide, or lines are cut
        with subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=terminal, text=True, cwd=self.folder) as child:
            os.close(terminal)
            patience = threading.Timer(300, child.kill)
            patience.start()
            shown = b""
            while True:
                try:
                    part = os.read(parent, 4096)
                except OSError:  # the program is gone, and its end of the terminal with it
                    break
                shown += part
                if interrupt_at and re.search(interrupt_at, shown):
                    child.send_signal(signal.SIGINT)
                    interrupt_at = None
            text = child.stdout.read()
            patience.cancel()
        os.close(parent)
        return child.returncode, text, shown

    def assert_same_run(self, one, other):
        self.assertEqual(figures(one), figures(other))
        for name in ("model.pt", "best.pt", "ema.pt"):
            weights = [path.read_bytes() if (path := Path(run) / name).exists() else None for run in (one, other)]
            self.assertEqual(weights[0], weights[1], name)
        self.assertTrue((Path(one) / "model.pt").exists())


def slow(test):
    """Marks a test that `make test` leaves to `make test-slow`."""
    test.level = "--slow"
    return test


def long(test):
    """Marks a test of minutes, above all of random faults by the hundred, which `make test-long` alone runs."""
    test.level = "--long"
    return test


def core_seconds():
    """Of this process and of all that it started and that have ended."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent) + (starter().spent if starter.cache_info().currsize else 0)


class TimedResult(unittest.TextTestResult):
    """Says of each test how long it took and how much it computed, so that what slows the whole can be found."""

    def startTest(self, test):
        self.began, self.spent = time.monotonic(), core_seconds()
        super().startTest(test)

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok ({time.monotonic() - self.began:.1f} s, {core_seconds() - self.spent:.1f} core-s)")


class TimedRunner(unittest.TextTestRunner):
    resultclass = TimedResult


def main():
    """Runs the tests of the file: all, or with --quick those without a mark, with --slow or --long those with that mark."""
    chosen = sys.argv[1] if len(sys.argv) > 1 else None

    class Loader(unittest.TestLoader):
        def getTestCaseNames(self, case):
            names = super().getTestCaseNames(case)
            return [name for name in names if getattr(getattr(case, name), "level", "--quick") == chosen]

    words, loader = sys.argv[1:], unittest.defaultTestLoader
    if chosen in ("--quick", "--slow", "--long"):
        words, loader = words[1:], Loader()
    result = unittest.main(argv=[sys.argv[0], *words], testLoader=loader, testRunner=TimedRunner, verbosity=2, exit=False).result
    if result.wasSuccessful() and result.testsRun == 0 and result.skipped:  # every class, by its setUpClass
        sys.exit(SKIPPED)
    # Nothing to run is a mistake in the list of tests, not a success.
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
