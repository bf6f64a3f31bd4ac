"""Runs a real server for a long time while things break, and then compares what it did with what was asked of it.

    python3 scripts/soak --minutes 30

Both stores in turn. Of each half, 40 % of the time the server is killed as well; after that the same process lives to the end, so
that its memory can be compared. Prints the seed, every fault, and a table. Exit code 1 if anything does not hold.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import checks
import loopback
from faults import Faults
from load import Load
from server import Baton
from store import Postgres, Sqlite

TENANTS = [f"tenant-{number}" for number in range(1, 9)]
KILLED_SHARE = 0.4
SAMPLE_SECONDS = 1.0


def options():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    parser = argparse.ArgumentParser(description="Runs a server while things break, and checks what is left.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None, help="repeats a plan of faults and messages")
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this store")
    parser.add_argument("--binary", type=pathlib.Path, default=target / "debug/baton")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=6)
    return parser.parse_args()


def opened(name, folder):
    data = folder / "data"
    data.mkdir()
    if name == "sqlite":
        return Sqlite(data)
    # PostgreSQL may run as another user, who has to reach its folder.
    for part in (folder.parent, folder):
        part.chmod(0o755)
    return Postgres(folder / "postgres")


def phase(name, folder, minutes, seed, chosen):
    """One store from an empty folder to its report."""
    report = checks.Report()
    recorder, address = loopback.start()
    store = opened(name, folder)
    server = Baton(chosen.binary, folder / "project", folder / "data", store.url, address)
    try:
        keys = {tenant: server.key(tenant, "ada") for tenant in TENANTS}
        if not server.start():
            raise SystemExit(f"soak: the server does not start; see {server.root}/server.log")
        load = Load(server, keys, seed, chosen.workers, chosen.readers)
        time.sleep(2)
        before, connections = server.descriptors(), store.connections()
        faults = Faults(server, store, seed)
        samples = disturb(server, load, faults, recorder, minutes * 60)
        settle(store)
        checks.leaks(server, store, before, connections, report)
        checks.memory(samples, store.cache_bytes, report)
        server.stop()
        checks.audit(server, TENANTS, report)
        checks.messages(store, load, recorder, faults, report)
        checks.effects(load, recorder, faults, report)
        checks.ledger(store, load, recorder, faults, report)
        report.line("disk", store.disk)
        for fault, count in sorted(faults.counts.items()):
            report.line(fault, count)
    finally:
        if server.is_alive():
            server.kill()
        store.close()
    return report


def disturb(server, load, faults, recorder, seconds):
    """Breaks things under load. Returns samples of the process that lived to the end: memory, and messages until then."""
    samples, last = [], [0.0]

    def sample():
        if time.time() - last[0] >= SAMPLE_SECONDS:
            last[0] = time.time()
            value = server.memory()
            samples.extend([(*value, len(load.sent))] if value else [])

    began = time.time()
    load.start()
    print("  the server is killed from time to time", flush=True)
    faults.run(began + seconds * KILLED_SHARE, True, recorder, lambda: None)
    print("  the server is no longer killed; memory is sampled", flush=True)
    faults.run(began + seconds, False, recorder, sample)
    load.stop()
    return samples


def settle(store):
    """Waits until every run has ended: what was queued is worked on, and what was cut is taken over."""
    deadline = time.time() + 300
    open_runs = "SELECT count(*) FROM runs WHERE status IN ('queued', 'running')"
    while time.time() < deadline and int(store.rows(open_runs)[0][0]) > 0:
        time.sleep(1)
    time.sleep(8)


def show(name, report):
    width = max(len(what) for what, _ in report.lines)
    print(f"\n{name}")
    for what, value in report.lines:
        print(f"  {what:<{width}}  {value}")
    for failure in report.failures[:50]:
        print(f"  FAILED: {failure}")
    if len(report.failures) > 50:
        print(f"  … and {len(report.failures) - 50} more")


def main():
    chosen = options()
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1 << 32)
    names = chosen.store or ["sqlite", "postgres"]
    print(f"soak: {chosen.minutes:g} minutes, seed {seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-soak-"))
    reports = {}
    for name in names:
        print(f"{name}:", flush=True)
        place = folder / name
        place.mkdir()
        reports[name] = phase(name, place, chosen.minutes / len(names), seed, chosen)
    for name, report in reports.items():
        show(name, report)
    is_well = not any(report.failures for report in reports.values())
    print(f"\nsoak: {'all checks hold' if is_well else f'FAILED; files are in {folder}'}, seed {seed}")
    if is_well:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
