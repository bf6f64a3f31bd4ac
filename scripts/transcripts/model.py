#!/usr/bin/env python3
"""A model on loopback that says what a file says, one reply per request, in the wire form of chat completions.

  model.py REPLIES.json PORT_FILE

A reply is {"text": "…"} or {"call": ["tool", {arguments}]}. The port is written to PORT_FILE.
"""
import http.server
import json
import sys

replies = iter(json.load(open(sys.argv[1], encoding="utf-8")))


def frame(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', 'model': 'm', 'choices': [choice]})}\n\n"


class Model(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        reply = next(replies)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if "call" in reply:
            name, arguments = reply["call"]
            function = {"name": name, "arguments": json.dumps(arguments)}
            body = frame({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
            body += frame({}, "tool_calls")
        else:
            body = "".join(frame({"content": word}) for word in reply["text"].splitlines(keepends=True)) + frame({}, "stop")
        usage = {"id": "1", "choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 40}}
        self.wfile.write((body + f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n").encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write(str(server.server_port))
server.serve_forever()
