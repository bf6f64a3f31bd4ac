"""The built server, a model on loopback that answers as a test says, and a proxy that cuts connections."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

BINARY = os.environ.get("BATON_BIN", "target/debug/baton")

Piece = Union[str, threading.Event, Dict[str, Any]]
"""A text, a gate to wait at, or a tool call ``{"tool": …, "arguments": …}``."""
Script = Callable[[str, List[Dict[str, Any]]], Sequence[Piece]]


class Model:
    """Speaks chat completions. ``script`` gets the name of the agent and the messages, and says what is answered."""

    def __init__(self, script: Script) -> None:
        model = self
        self.requests: List[Dict[str, Any]] = []
        self.arrived: List[float] = []
        """When each request arrived, and when its reply was complete."""
        self.replied: List[float] = []

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.send_error(404)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.arrived.append(time.monotonic())
                model.requests.append(body)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                try:
                    self.play(script(_agent_of(body), body["messages"]))
                except OSError:
                    pass

            def play(self, pieces: Sequence[Piece]) -> None:
                finish = "stop"
                for at, piece in enumerate(pieces):
                    if isinstance(piece, threading.Event):
                        piece.wait(60)
                    elif isinstance(piece, str):
                        self.chunk({"content": piece}, None)
                    else:
                        finish = "tool_calls"
                        function = {"name": piece["tool"], "arguments": json.dumps(piece["arguments"])}
                        call = {"index": at, "id": f"call_{at}", "type": "function", "function": function}
                        self.chunk({"tool_calls": [call]}, None)
                self.chunk({}, finish)
                usage = {"id": "1", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
                model.replied.append(time.monotonic())
                self.wfile.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())

            def chunk(self, delta: Dict[str, Any], finish: Optional[str]) -> None:
                choice = {"index": 0, "delta": delta, "finish_reason": finish}
                chunk = {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _agent_of(body: Mapping[str, Any]) -> str:
    prompt = str(body["messages"][0]["content"])
    return prompt.partition("I am `")[2].partition("`")[0]


AGENTS = {
    "assistant": "agents: [web-research, internal-docs]\ndelegation: {strategies: [parallel, sequential, first_success]}",
    "web-research": "display_name: Web Research",
    "internal-docs": "display_name: Internal Docs",
    "writer": "tools: [write_file, ask_user]\napprovals: { ask: [write_file] }",
}


def project(folder: Path, model: Model, extra: str = "", agents: Optional[Mapping[str, str]] = None) -> Path:
    (folder / "agents").mkdir()
    for name, head in (agents or AGENTS).items():
        text = f"---\ndescription: The {name}.\n{head}\n---\nI am `{name}`.\n"
        (folder / "agents" / f"{name}.md").write_text(text)
    (folder / "baton.toml").write_text(
        '[agents]\nmain = "assistant"\n[models]\ndefault = "local/m"\n'
        f'[models.providers.local]\nbase_url = "{model.base_url}"\n'
        "[models.providers.local.models.m]\n"
        "assists = { workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }\n" + extra
    )
    return folder


class Server:
    """`baton serve` in a process of its own."""

    def __init__(self, folder: Path, *args: str, env: Optional[Mapping[str, str]] = None) -> None:
        self.folder, self._args, self._env = folder, args, env or {}
        self._start(0)

    def _start(self, port: int) -> None:
        command = [BINARY, "serve", "--listen", f"127.0.0.1:{port}", *self._args]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env={**inherited, **self._env}, stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        self.address = line.strip().partition("://")[2]
        assert self.address, f"the server did not start: {line!r}"
        self.url = f"http://{self.address}"

    def crash(self) -> None:
        """Kills it and starts it again at the same address."""
        self.process.kill()
        self.process.wait()
        self._start(int(self.address.rpartition(":")[2]))

    def key(self, tenant: str, user: str, role: str = "user") -> str:
        command = [BINARY, "keys", "create", "--tenant", tenant, "--user", user, "--role", role]
        created = subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        return created.stdout.decode().strip()

    def logged(self) -> List[Dict[str, Any]]:
        """The lines of a log in JSON."""
        lines = (self.folder / "server.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class Proxy:
    """Forwards connections, and cuts each after as many bytes of the response as ``limits`` says; ``None`` never."""

    def __init__(self, address: str, limits: Callable[[int], Optional[int]]) -> None:
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._limits = limits
        self.connections = 0
        self._open: List[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            limit = self._limits(self.connections)
            self.connections += 1
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            threading.Thread(target=self._copy, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, limit), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, limit: Optional[int]) -> None:
        try:
            while chunk := source.recv(65536 if limit is None else min(limit, 65536)):
                target.sendall(chunk)
                if limit is not None:
                    limit -= len(chunk)
                    if limit <= 0:
                        break
        except OSError:
            pass
        for one in (source, target):
            self._reset(one)

    def _reset(self, one: socket.socket) -> None:
        try:
            # A broken connection, not one that was closed in order.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()

    def cut(self) -> None:
        """Cuts all open connections now."""
        opened, self._open = self._open, []
        for one in opened:
            self._reset(one)

    def close(self) -> None:
        self._listener.close()
        self.cut()
