"""People who use the server: many tenants, each message sent until it is accepted, and readers that hardly read."""

import http.client
import json
import random
import socket
import threading
import time
import uuid

GIVE_UP_SECONDS = 180


class Sent:
    """A message, and what the server said about it."""

    def __init__(self, tenant, thread, order):
        self.tenant, self.thread, self.order = tenant, thread, order
        self.began, self.run, self.attempts, self.refused = time.time(), None, 0, None


class Load:
    def __init__(self, server, keys, seed, workers, readers):
        self.server, self.keys, self.seed = server, keys, seed
        self.sent, self.lock, self.stopping = [], threading.Lock(), threading.Event()
        self.latencies = []
        self.threads = {tenant: [str(uuid.UUID(int=random.Random(f"{seed}{tenant}{i}").getrandbits(128), version=4)) for i in range(6)] for tenant in keys}
        self.workers = [threading.Thread(target=self.work, args=(i,), daemon=True) for i in range(workers)]
        self.readers = [threading.Thread(target=self.read_slowly, args=(i,), daemon=True) for i in range(readers)]

    def start(self):
        for thread in self.workers + self.readers:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.workers + self.readers:
            thread.join(GIVE_UP_SECONDS + 30)

    def work(self, number):
        chance = random.Random(f"{self.seed} worker {number}")
        tenant = sorted(self.keys)[number % len(self.keys)]
        while not self.stopping.is_set():
            order = uuid.UUID(int=chance.getrandbits(128)).hex
            sent = Sent(tenant, chance.choice(self.threads[tenant]), order)
            with self.lock:
                self.sent.append(sent)
            self.send(sent, chance)
            self.stopping.wait(chance.uniform(0.05, 0.6))

    def send(self, sent, chance):
        """The same key until the server says that it has the message: it must be worked on once."""
        way = chance.choice(["json", "async", "events"])
        while sent.run is None and time.time() < sent.began + GIVE_UP_SECONDS:
            sent.attempts += 1
            try:
                sent.run = self.attempt(sent, way)
            except (OSError, http.client.HTTPException, ValueError):
                sent.run = None
            if sent.refused:
                return
            if sent.run is None:
                way = "async"
                time.sleep(chance.uniform(0.2, 1.0))
        if sent.attempts == 1 and way == "json":
            self.latencies.append(time.time() - sent.began)

    def attempt(self, sent, way):
        headers = {
            "Authorization": f"Bearer {self.keys[sent.tenant]}",
            "Content-Type": "application/json",
            "Idempotency-Key": sent.order,
            "Accept": "text/event-stream" if way == "events" else "application/json",
        }
        if way == "async":
            headers["Prefer"] = "respond-async"
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            body = json.dumps({"content": f"Please book order {sent.order}."})
            connection.request("POST", f"/api/v1/threads/{sent.thread}/messages", body, headers)
            answer = connection.getresponse()
            if answer.status >= 500 or answer.status in (408, 425, 429):
                return None
            if answer.status >= 400:
                sent.refused = f"{answer.status} {answer.read(2000).decode(errors='replace')}"
                return None
            return first_run(answer) if way == "events" else json.loads(answer.read())["run_id"]
        finally:
            connection.close()

    def read_slowly(self, number):
        """Joins a busy thread with a small buffer and reads a few bytes now and then."""
        chance = random.Random(f"{self.seed} reader {number}")
        while not self.stopping.is_set():
            tenant = chance.choice(sorted(self.keys))
            thread = chance.choice(self.threads[tenant])
            try:
                with socket.socket() as stream:
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    stream.settimeout(5)
                    stream.connect(("127.0.0.1", self.server.port))
                    head = f"GET /api/v1/threads/{thread}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {self.keys[tenant]}\r\n\r\n"
                    stream.sendall(head.encode())
                    until = time.time() + chance.uniform(10, 60)
                    while time.time() < until and not self.stopping.is_set():
                        try:
                            if not stream.recv(64):
                                break
                        except TimeoutError:
                            pass
                        time.sleep(0.25)
            except OSError:
                time.sleep(1)


def first_run(answer):
    """The run of a stream, which is then read to its end or until it breaks."""
    run = None
    for line in answer:
        if line.startswith(b"data:") and run is None:
            run = json.loads(line[5:]).get("runId")
        if b'"RUN_FINISHED"' in line or b'"RUN_ERROR"' in line:
            break
    return run
