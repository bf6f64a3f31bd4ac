"""What goes wrong, when: a plan that follows from the seed, and a record of when each fault began and ended."""

import random
import time

QUIET_SECONDS = (4, 12)


class Faults:
    """Breaks things until `until`. The windows of time are what failures have to be explained by."""

    def __init__(self, server, store, seed):
        self.server, self.store = server, store
        self.chance = random.Random(f"{seed} faults")
        self.windows, self.counts, self.in_flight = [], {}, 0

    def run(self, until, may_kill, recorder, sample):
        while time.time() < until:
            pause = time.time() + self.chance.uniform(*QUIET_SECONDS)
            while time.time() < min(pause, until):
                time.sleep(0.25)
                sample()
            if time.time() < until:
                self.next(may_kill, recorder)

    def next(self, may_kill, recorder):
        choices = [self.kill, self.kill, self.terminate] if may_kill else []
        choices += [self.restart_store, self.restart_store] if self.store.restarts else [self.fill_disk]
        fault = self.chance.choice(choices)
        began = time.time()
        self.in_flight += recorder.active if fault == self.kill else 0
        name = fault()
        self.counts[name] = self.counts.get(name, 0) + 1
        self.windows.append((name, began, time.time()))
        print(f"  {time.strftime('%H:%M:%S')} {name}, over after {time.time() - began:.1f} s", flush=True)

    def kill(self):
        self.server.kill()
        time.sleep(self.chance.uniform(0, 1))
        self.start()
        return "SIGKILL"

    def terminate(self):
        self.server.stop()
        self.start()
        return "SIGTERM"

    def start(self):
        for _ in range(10):
            if self.server.start():
                return
            time.sleep(1)
        raise SystemExit(f"soak: the server does not start; see {self.server.root}/server.log")

    def restart_store(self):
        how = self.chance.choice(["fast", "immediate"])
        self.store.restart(how)
        return f"PostgreSQL restart ({how})"

    def fill_disk(self):
        self.store.fill(self.server)
        time.sleep(self.chance.uniform(2, 6))
        self.store.free(self.server)
        return "disk full"

    def explains(self, began, ended):
        """Whether a fault happened while a message was worked on. Recovery after a fault takes a while."""
        return any(start <= ended + 1 and end + 60 >= began for _, start, end in self.windows)
