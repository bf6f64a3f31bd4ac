"""The server under test: its project, its store, its process, and what the system says about it."""

import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request

AGENT = """---
name: clerk
description: Books each order once.
tools: ["mcp:counter/book"]
approvals: {auto: ["mcp:counter/*"]}
---
Book the order, then confirm it.
"""

CONFIG = """[agents]
main = "clerk"
watch = false
[auth]
mode = "required"
[store]
url = "{store}"
[models]
default = "local/m"
[models.providers.local]
base_url = "{loopback}/v1"
[limits]
requests_per_minute = 100000
max_concurrent_runs = 64
[mcp.servers.counter]
url = "{loopback}/mcp"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Baton:
    """A project in `root`; the process may be killed and started any number of times."""

    def __init__(self, binary, root, data, store, loopback):
        self.binary, self.root, self.data = str(binary), pathlib.Path(root), pathlib.Path(data)
        self.port, self.process, self.starts = free_port(), None, 0
        (self.root / "agents").mkdir(parents=True)
        (self.root / "agents/clerk.md").write_text(AGENT)
        (self.root / "baton.toml").write_text(CONFIG.format(store=store, loopback=loopback))
        self.log = open(self.root / "server.log", "ab")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("BATON_")}
        self.environment["BATON_LOG"] = "warn"

    def command(self, *arguments):
        ran = subprocess.run(
            [self.binary, *arguments], cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=300
        )
        return ran.returncode, ran.stdout, ran.stderr

    def key(self, tenant, user):
        code, out, error = self.command("keys", "create", "--tenant", tenant, "--user", user, "--role", "user")
        if code:
            raise SystemExit(f"soak: cannot create a key: {error}")
        return out.strip()

    def start(self):
        # A file-size limit stands for a full disk where nothing can be mounted; its signal would end the process.
        ignore = lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.process = subprocess.Popen(
            [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--no-ui"],
            cwd=self.root, env=self.environment, stdout=self.log, stderr=self.log, preexec_fn=ignore,
        )
        self.starts += 1
        deadline = time.time() + 120
        while time.time() < deadline:
            if self.process.poll() is not None:
                return False
            if self.is_ready():
                return True
            time.sleep(0.1)
        raise SystemExit(f"soak: the server is not ready; see {self.root}/server.log")

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.kill()

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def memory(self):
        """Resident bytes of the process: all, and those that are not pages of files. None while it does not run."""
        found = {}
        try:
            for line in open(f"/proc/{self.process.pid}/status"):
                name, _, value = line.partition(":")
                if name in ("VmRSS", "RssAnon"):
                    found[name] = int(value.split()[0]) * 1024
        except OSError:
            return None
        return (found["VmRSS"], found["RssAnon"]) if len(found) == 2 else None

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def children(self):
        found = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            found += len(open(f"/proc/{self.process.pid}/task/{task}/children").read().split())
        return found
