"""The two stores: where they are, how they fail, and their rows, read past Baton."""

import csv
import io
import os
import pathlib
import sqlite3
import subprocess
import uuid

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
DISK_BYTES = 1 << 30


class Sqlite:
    name = "sqlite"
    restarts = False
    # 16 MiB of the writing connection, 2 MiB of each of the eight reading ones.
    cache_bytes = (16 + 8 * 2) << 20

    def __init__(self, data):
        self.data = pathlib.Path(data)
        self.url = f"sqlite://{self.data / 'baton.db'}"
        self.is_mounted = False
        if os.geteuid() == 0:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "soak", str(self.data)]
            self.is_mounted = subprocess.run(mount, capture_output=True).returncode == 0
        self.disk = "a full 1 GiB tmpfs" if self.is_mounted else "a file-size limit"

    def fill(self, server):
        """Takes what is left of the disk, or stops the database file from growing."""
        if not self.is_mounted:
            size = max(path.stat().st_size for path in self.data.iterdir())
            return limit_files(server, size)
        with open(self.data / "ballast", "ab", buffering=0) as ballast:
            for size in (1 << 20, 4096, 1):
                try:
                    while ballast.write(bytes(size)):
                        pass
                except OSError:
                    pass

    def free(self, server):
        if self.is_mounted:
            (self.data / "ballast").unlink(missing_ok=True)
        elif server.is_alive():
            limit_files(server, "unlimited")

    def rows(self, query):
        with sqlite3.connect(self.data / "baton.db") as database:
            return [tuple(map(plain, row)) for row in database.execute(query)]

    def connections(self):
        return 0

    def close(self):
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self.data)], check=True)


class Postgres:
    name = "postgres"
    restarts = True
    cache_bytes = 0
    disk = "not exercised"

    def __init__(self, folder):
        self.folder = str(folder)
        script = [SCRIPTS / "postgres.sh", "start", self.folder]
        self.url = subprocess.run(script, check=True, capture_output=True, text=True).stdout.strip()
        self.psql = subprocess.run([SCRIPTS / "postgres.sh", "bin"], check=True, capture_output=True, text=True)
        self.psql = pathlib.Path(self.psql.stdout.strip()) / "psql"

    def restart(self, how):
        subprocess.run([SCRIPTS / "postgres.sh", "restart", self.folder, how], check=True)

    def rows(self, query):
        command = [self.psql, self.url, "--no-psqlrc", "--csv", "--tuples-only", "-c", query]
        environment = {**os.environ, "PGOPTIONS": "-c search_path=baton"}
        out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        return [tuple(map(plain, row)) for row in csv.reader(io.StringIO(out))]

    def connections(self):
        return int(self.rows("SELECT count(*) FROM pg_stat_activity WHERE application_name <> 'psql' AND backend_type = 'client backend'")[0][0])

    def close(self):
        subprocess.run([SCRIPTS / "postgres.sh", "stop", self.folder], check=True)


def limit_files(server, size):
    limit = ["prlimit", "--pid", str(server.process.pid), f"--fsize={size}:unlimited"]
    subprocess.run(limit, check=True, capture_output=True)


def plain(value):
    """Ids as text, whatever the database keeps them as."""
    if isinstance(value, bytes) and len(value) == 16:
        return str(uuid.UUID(bytes=value))
    return value
