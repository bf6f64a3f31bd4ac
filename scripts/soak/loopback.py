"""A model and an MCP server on loopback that record every call: what Baton has to answer for is counted outside of Baton."""

import json
import random
import re
import threading
import time
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ORDER = re.compile(r"order ([0-9a-f]{32})")


class Recorder:
    """Model calls and tool calls by order."""

    def __init__(self):
        self.lock = threading.Lock()
        self.model_calls = defaultdict(list)  # order -> start times
        self.effects = Counter()
        self.unknown = set()  # orders whose model was told that an outcome is unknown
        self.active = 0

    def begin(self, order):
        with self.lock:
            self.model_calls[order].append(time.time())
            self.active += 1

    def end(self):
        with self.lock:
            self.active -= 1

    def effect(self, order):
        with self.lock:
            self.effects[order] += 1


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        """Baton is killed while it reads; that is no error of this server."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")

    def reply(self, status, value=None):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(405 if self.path.startswith("/mcp") else 404)

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        if self.path.startswith("/mcp"):
            self.mcp(self.body())
        else:
            self.chat(self.body())

    # The model: books the order with a tool, then confirms it.

    def chat(self, request):
        messages = request["messages"]
        last = max(i for i, message in enumerate(messages) if message["role"] == "user")
        order = ORDER.findall(json.dumps(messages[last]["content"]))[-1]
        results = [m for m in messages[last:] if m["role"] == "tool"]
        if any("outcome is unknown" in json.dumps(m["content"]) for m in results):
            self.server.recorder.unknown.add(order)
        self.server.recorder.begin(order)
        try:
            self.stream(order, bool(results), request["tools"] if "tools" in request else [])
        finally:
            self.server.recorder.end()

    def stream(self, order, is_booked, tools):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if is_booked or not tools:
            words = ["Confirmed ", f"order {order}", ". ", "Thank you. " * random.randint(1, 40)]
            deltas = [({"content": word}, None) for word in words] + [({}, "stop")]
        else:
            function = {"name": tools[0]["function"]["name"], "arguments": json.dumps({"order": order})}
            call = {"index": 0, "id": f"call_{order[:8]}", "type": "function", "function": function}
            deltas = [({"tool_calls": [call]}, None), ({}, "tool_calls")]
        for delta, finish in deltas:
            time.sleep(random.uniform(0.005, 0.06))
            self.frame({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        self.frame({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def frame(self, value):
        chunk = {"id": "1", "object": "chat.completion.chunk", "model": "m", **value}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    # The MCP server: one tool that must not be called twice.

    def mcp(self, request):
        method, params = request.get("method"), request.get("params", {})
        if "id" not in request:
            return self.reply(202)
        if method == "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "counter", "version": "1.0.0"},
            }
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
            hints = {"readOnlyHint": False, "idempotentHint": False}
            tool = {"name": "book", "description": "Books an order.", "inputSchema": schema, "annotations": hints}
            result = {"tools": [tool]}
        elif method == "tools/call":
            time.sleep(random.uniform(0.0, 0.05))
            self.server.recorder.effect(params["arguments"]["order"])
            time.sleep(random.uniform(0.0, 0.05))
            result = {"content": [{"type": "text", "text": "booked"}]}
        else:
            result = {}
        self.reply(200, {"jsonrpc": "2.0", "id": request["id"], "result": result})


def start():
    server = Server(("127.0.0.1", 0), Handler)
    server.recorder = Recorder()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.recorder, f"http://127.0.0.1:{server.server_address[1]}"
