"""What has to hold afterwards. Rows of the store are compared with what clients sent and with what the loopback counted."""

import json
import statistics
from collections import Counter, defaultdict

FINAL = {"completed", "failed", "cancelled", "interrupted"}
# The last third may use a tenth more than the first, and 16 MiB for what fragmentation does to small processes.
MEMORY_FACTOR, MEMORY_SLACK = 1.10, 16 << 20
DESCRIPTOR_SLACK = 24


class Report:
    def __init__(self):
        self.lines, self.failures = [], []

    def line(self, what, value):
        self.lines.append((what, str(value)))

    def check(self, is_so, sentence):
        if not is_so:
            self.failures.append(sentence)


def messages(store, load, recorder, faults, report):
    """Nothing lost: each accepted message has one run, one user message and, if it completed, one answer."""
    runs = {run: (status, result) for run, status, result in store.rows("SELECT run_id, status, result FROM runs")}
    said = defaultdict(Counter)
    for run, role, parts in store.rows("SELECT run_id, role, parts FROM messages"):
        said[run][role] += 1
        said[run][f"{role} text"] = parts
    by_order = Counter()
    for run in runs:
        by_order[order_of(said[run].get("user text", ""))] += 1
    outcome, codes = Counter(), Counter()
    for sent in load.sent:
        if sent.refused:
            report.check(False, f"order {sent.order} was refused: {sent.refused[:300]}")
        if sent.run is None:
            outcome["never accepted"] += 1
            report.check(by_order[sent.order] <= 1, f"order {sent.order} was accepted more than once")
            continue
        status, result = runs.get(sent.run, ("lost", None))
        outcome[status] += 1
        report.check(status in FINAL, f"order {sent.order}: its run {sent.run} is {status}")
        report.check(by_order[sent.order] == 1, f"order {sent.order} has {by_order[sent.order]} runs")
        if status == "completed":
            answers = said[sent.run]["assistant"]
            is_answer = f"order {sent.order}" in str(said[sent.run].get("assistant text"))
            report.check(answers == 1 and is_answer, f"order {sent.order} has {answers} answers")
        elif status in FINAL:
            code = error_code(result)
            codes[f"{status} ({code})"] += 1
            is_explained = faults.explains(sent.began, sent.began + 180)
            report.check(is_explained, f"order {sent.order} {status} ({code}) without a fault")
    report.line("messages sent", len(load.sent))
    report.line("answered", outcome["completed"])
    for what, count in sorted(codes.items()):
        report.line(what, count)
    report.line("never accepted (server down until the client gave up)", outcome["never accepted"])
    report.line("sent again after no answer", sum(sent.attempts > 1 for sent in load.sent))
    report.check(outcome["completed"] > 0, "nothing was answered")
    return runs, said


def effects(load, recorder, faults, report):
    """Nothing executed twice. A tool that was never called is one whose model was told so, and a fault explains it."""
    twice = [order for order, count in recorder.effects.items() if count > 1]
    for order in twice:
        report.check(False, f"the tool booked order {order} {recorder.effects[order]} times")
    report.line("tool calls that had an effect", sum(recorder.effects.values()))
    report.line("executed twice", len(twice))
    report.line("models told that an outcome is unknown", len(recorder.unknown))
    for sent in load.sent:
        if sent.order in recorder.unknown:
            is_explained = faults.explains(sent.began, sent.began + 180)
            report.check(is_explained, f"order {sent.order}: an unknown outcome without a fault")


def ledger(store, load, recorder, faults, report):
    """One row per model call. A call that a kill cut may be without a row, or a row without a call: one for each in flight."""
    rows = Counter()
    for run, count in store.rows("SELECT run_id, count(*) FROM ledger WHERE kind = 'model' GROUP BY run_id"):
        rows[run] = int(count)
    calls, exact = 0, 0
    for sent in load.sent:
        made = len(recorder.model_calls[sent.order])
        calls += made
        billed = rows[sent.run] if sent.run else made
        if made == billed:
            exact += 1
        else:
            is_explained = faults.explains(sent.began, sent.began + 180)
            report.check(is_explained, f"order {sent.order}: {made} model calls and {billed} ledger rows without a fault")
    billed = sum(rows.values())
    report.line("model calls counted by the provider", calls)
    report.line("model calls in the ledger", billed)
    report.line("calls in flight at a SIGKILL", faults.in_flight)
    report.line("orders whose calls and rows are equal", f"{exact} of {len(load.sent)}")
    allowed = faults.in_flight + 2 * sum(faults.counts.values())
    report.check(abs(calls - billed) <= allowed, f"{calls} calls, {billed} rows: more apart than {allowed}")


def memory(samples, cache_bytes, report):
    """Memory of the process that was not killed, without its first quarter.

    The caches of the store fill up to a fixed size, which is no leak. What grows with every message would go on growing: the last two
    lines show how much that is per 1,000 messages, in the first and in the second half.
    """
    samples = samples[len(samples) // 4:]
    third = len(samples) // 3
    if third < 5:
        return report.line("memory", f"too few samples ({len(samples)})")
    mib = lambda value: f"{value / (1 << 20):.1f} MiB"
    resident, anonymous = [[sample[at] for sample in samples] for at in (0, 1)]
    first, last = statistics.median(resident[:third]), statistics.median(resident[-third:])
    report.line("resident memory, first and last third (median)", f"{mib(first)}, {mib(last)}")
    own = [statistics.median(anonymous[:third]), statistics.median(anonymous[-third:])]
    report.line("of it not pages of files", f"{mib(own[0])}, {mib(own[1])}")
    sixth = len(samples) // 6
    parts = [statistics.median(anonymous[at * sixth:(at + 1) * sixth]) for at in range(6)]
    report.line("the same in six parts", " ".join(f"{part / (1 << 20):.1f}" for part in parts))
    report.line("caches of the store may have", mib(cache_bytes))
    half = len(samples) // 2
    for name, part in (("first", samples[:half]), ("second", samples[half:])):
        report.line(f"growth per 1,000 messages, {name} half", mib(1000 * slope(part)))
    limit = first * MEMORY_FACTOR + MEMORY_SLACK
    report.check(last <= limit, f"memory grew from {mib(first)} to {mib(last)}, more than 10 % and 16 MiB")


def slope(samples):
    """Bytes per message, by least squares."""
    messages, bytes_ = [sample[2] for sample in samples], [sample[1] for sample in samples]
    mean_m, mean_b = statistics.mean(messages), statistics.mean(bytes_)
    spread = sum((m - mean_m) ** 2 for m in messages)
    return sum((m - mean_m) * (b - mean_b) for m, b in zip(messages, bytes_)) / spread if spread else 0.0


def leaks(server, store, before, connections, report):
    """Descriptors, processes and connections once the load has gone."""
    after = server.descriptors()
    report.line("descriptors before and after", f"{before}, {after}")
    report.check(after <= before + DESCRIPTOR_SLACK, f"{after} descriptors are open, {before} were before the load")
    report.line("child processes", server.children())
    report.check(server.children() == 0, "child processes are left")
    if store.restarts:
        report.line("connections to PostgreSQL before and after", f"{connections}, {store.connections()}")


def audit(server, tenants, report):
    """Every tenant's trail, and that of the installation."""
    help_text = server.command("audit", "--help")[1]
    has_command = any(line.strip().startswith("verify ") for line in help_text.splitlines())
    verify = ["audit", "verify"] if has_command else ["audit", "--verify"]
    per_tenant = "--tenant" in server.command(*verify, "--help")[1]
    entries, names = 0, tenants if per_tenant else [None]
    for tenant in names:
        which = ["--tenant", tenant] if tenant else []
        code, out, error = server.command(*verify, *which, "--json")
        report.check(code == 0, f"the audit trail of {tenant or 'the installation'} is broken: {out} {error}")
        if code == 0:
            entries += json.loads(out).get("entries", 0)
    report.line("audit trails intact", f"{len(names)}, {entries} entries")


def order_of(parts):
    words = str(parts).split("order ", 1)
    return words[1][:32] if len(words) > 1 else ""


def error_code(result):
    try:
        value = json.loads(result or "{}")
    except ValueError:
        return "unreadable"
    return value.get("code") or value.get("error", {}).get("code") or next(iter(value), "none")
