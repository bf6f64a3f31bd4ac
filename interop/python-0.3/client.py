"""Checks a server with the official Python SDK 0.3 as the client: `client.py URL TRANSPORT`."""

import asyncio
import json
import queue
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)

UNKNOWN = "019a0000-0000-7000-8000-000000000000"


class Receiver(ThreadingHTTPServer):
    """Receives push notifications on a free port. `deliveries` has the token and the JSON body of each."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Delivery)
        self.url = f"http://127.0.0.1:{self.server_port}/notify"
        self.deliveries = queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)

    async def until_completed(self, is_completed, tokens):
        """Waits until each token has come with a task that is completed."""
        async with asyncio.timeout(20):
            while tokens:
                try:
                    token, body = self.deliveries.get_nowait()
                except queue.Empty:
                    await asyncio.sleep(0.05)
                    continue
                if is_completed(body):
                    tokens = tokens - {token}


class Delivery(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.deliveries.put((self.headers["X-A2A-Notification-Token"], body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def message(text, **more):
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], **more)


def texts(artifact):
    return "".join(part.root.text for part in artifact.parts if isinstance(part.root, TextPart))


async def last_task(events):
    task = None
    async for task, _ in events:
        pass
    return task


async def send(blocking, _):
    task = await last_task(blocking.send_message(message("hello")))
    assert task.status.state == TaskState.completed, task
    assert texts(task.artifacts[0]) == "Good morning.", task


async def stream(_, streaming):
    updates = []
    async for task, update in streaming.send_message(message("hello")):
        updates.append(update)
    assert updates[0] is None and len(updates) > 2, updates
    assert updates[-1].final and task.status.state == TaskState.completed, updates[-1]
    assert texts(task.artifacts[0]) == "Good morning.", task


async def begin(blocking, text="slow"):
    configuration = MessageSendConfiguration(blocking=False)
    return await last_task(blocking.send_message(message(text), configuration=configuration))


async def get(blocking, _):
    sent = await last_task(blocking.send_message(message("hello")))
    task = await blocking.get_task(TaskQueryParams(id=sent.id, history_length=1))
    assert task.id == sent.id and len(task.history) == 1, task


async def cancel(blocking, _):
    task = await begin(blocking)
    assert task.status.state in (TaskState.submitted, TaskState.working), task
    cancelled = await blocking.cancel_task(TaskIdParams(id=task.id))
    assert cancelled.status.state == TaskState.canceled, cancelled


async def resubscribe(blocking, streaming):
    task = await begin(blocking)
    followed = await last_task(streaming.resubscribe(TaskIdParams(id=task.id)))
    assert followed.status.state == TaskState.completed, followed
    assert texts(followed.artifacts[0]) == "Good morning.", followed


async def extended_card(blocking, _):
    card = await blocking.get_card()
    assert card.supports_authenticated_extended_card and card.skills, card


async def push(blocking, _):
    """This client can neither list nor delete configurations. It takes the one of a message from its own settings."""
    with Receiver() as receiver:
        sent, added = [
            PushNotificationConfig(id=name, url=receiver.url, token=f"token-{name}") for name in ("sent", "added")
        ]
        async with httpx.AsyncClient(timeout=30) as http:
            task = await begin(await connect(http, streaming=False, push_notification_configs=[sent]))
        callback = TaskPushNotificationConfig(task_id=task.id, push_notification_config=added)
        assert await blocking.set_task_callback(callback) == callback
        for config in (sent, added):
            query = GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id=config.id)
            found = await blocking.get_task_callback(query)
            assert found.task_id == task.id and found.push_notification_config == config, found

        def is_completed(body):
            told = Task.model_validate(body)
            assert told.id == task.id, told
            return told.status.state == TaskState.completed

        await receiver.until_completed(is_completed, {sent.token, added.token})


async def fails(code, call):
    try:
        result = await call
    except A2AClientJSONRPCError as error:
        assert error.error.code == code, error
    except A2AClientHTTPError as error:
        assert error.status_code == {-32001: 404, -32002: 409, -32602: 400}[code], error
    else:
        raise AssertionError(f"no error: {result}")


async def errors(blocking, _):
    await fails(-32001, blocking.get_task(TaskQueryParams(id=UNKNOWN)))
    done = await last_task(blocking.send_message(message("hello")))
    await fails(-32002, blocking.cancel_task(TaskIdParams(id=done.id)))
    await fails(-32602, last_task(blocking.send_message(message("more", task_id=done.id, context_id=done.context_id))))


CHECKS = [send, stream, get, cancel, resubscribe, extended_card, push, errors]


async def connect(http, **more):
    url, transport = sys.argv[1:3]
    card = await A2ACardResolver(http, url).get_agent_card()
    transports = [TransportProtocol(transport)]
    config = ClientConfig(httpx_client=http, supported_transports=transports, use_client_preference=True, **more)
    return ClientFactory(config).create(card)


async def main():
    async with httpx.AsyncClient(timeout=30) as http:
        blocking, streaming = [await connect(http, streaming=streams) for streams in (False, True)]
        for check in CHECKS:
            await check(blocking, streaming)
            print("ok", check.__name__, flush=True)


asyncio.run(main())
