"""Checks a server with the official Python SDK 1.3 as the client: `client.py URL TRANSPORT VERSION`."""

import asyncio
import json
import queue
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.compat.v0_3 import types as v0_3
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import ParseDict

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


def request(text, immediately=False, push=None, **more):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    configuration = SendMessageConfiguration(return_immediately=immediately, task_push_notification_config=push)
    return SendMessageRequest(message=message, configuration=configuration)


async def collect(events):
    return [event async for event in events]


async def sent_task(blocking, *args, **more):
    return (await collect(blocking.send_message(request(*args, **more))))[-1].task


def text_of(events):
    text = ""
    for event in events:
        if event.HasField("artifact_update"):
            chunk = "".join(part.text for part in event.artifact_update.artifact.parts)
            text = text + chunk if event.artifact_update.append else chunk
        elif event.HasField("task") and event.task.artifacts:
            text = "".join(part.text for part in event.task.artifacts[-1].parts)
    return text


async def send(blocking, _):
    task = await sent_task(blocking, "hello")
    assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
    assert task.artifacts[0].parts[0].text == "Good morning.", task


async def stream(_, streaming):
    events = await collect(streaming.send_message(request("hello")))
    assert events[0].HasField("task") and len(events) > 2, events
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
    assert text_of(events) == "Good morning.", events


async def get(blocking, _):
    sent = await sent_task(blocking, "hello")
    task = await blocking.get_task(GetTaskRequest(id=sent.id, history_length=1))
    assert task.id == sent.id and len(task.history) == 1, task


async def cancel(blocking, _):
    task = await sent_task(blocking, "slow", immediately=True)
    cancelled = await blocking.cancel_task(CancelTaskRequest(id=task.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled


async def resubscribe(blocking, streaming):
    task = await sent_task(blocking, "slow", immediately=True)
    events = await collect(streaming.subscribe(SubscribeToTaskRequest(id=task.id)))
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
    assert text_of(events) == "Good morning.", events


async def extended_card(blocking, _):
    card = await blocking.get_extended_agent_card(GetExtendedAgentCardRequest())
    assert card.skills and card.capabilities.extended_agent_card, card


async def list_tasks(blocking, _):
    if sys.argv[3] == "1.0":
        listed = await blocking.list_tasks(ListTasksRequest(page_size=2))
        assert len(listed.tasks) == 2 and listed.next_page_token, listed


async def push(blocking, _):
    with Receiver() as receiver:
        configs = {
            name: TaskPushNotificationConfig(id=name, url=receiver.url, token=f"token-{name}")
            for name in ("sent", "added", "deleted")
        }
        task = await sent_task(blocking, "slow", immediately=True, push=configs["sent"])
        for config in configs.values():
            config.task_id = task.id
        for name in ("added", "deleted"):
            created = await blocking.create_task_push_notification_config(configs[name])
            assert created == configs[name], created
        for name, config in configs.items():
            query = GetTaskPushNotificationConfigRequest(task_id=task.id, id=name)
            found = await blocking.get_task_push_notification_config(query)
            assert found == config, found
        # The SDK has neither of the two for 0.3 over REST.
        if sys.argv[2:4] != ["HTTP+JSON", "0.3"]:
            await list_and_delete(blocking, configs, task.id)

        def is_completed(body):
            if sys.argv[3] == "0.3":
                told = v0_3.Task.model_validate(body)
                completed = told.status.state == v0_3.TaskState.completed
            else:
                told = ParseDict(body, StreamResponse()).task
                completed = told.status.state == TaskState.TASK_STATE_COMPLETED
            assert told.id == task.id, told
            return completed

        await receiver.until_completed(is_completed, {"token-sent", "token-added"})


async def list_and_delete(blocking, configs, task_id):
    async def listed():
        response = await blocking.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=task_id)
        )
        return {config.id: config for config in response.configs}

    assert await listed() == configs, await listed()
    await blocking.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="deleted")
    )
    assert set(await listed()) == {"sent", "added"}, await listed()


async def fails(kind, call):
    try:
        result = await call
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}: {result}")


async def errors(blocking, _):
    await fails(TaskNotFoundError, blocking.get_task(GetTaskRequest(id=UNKNOWN)))
    done = await sent_task(blocking, "hello")
    await fails(TaskNotCancelableError, blocking.cancel_task(CancelTaskRequest(id=done.id)))
    await fails(A2AError, sent_task(blocking, "more", task_id=done.id, context_id=done.context_id))


CHECKS = [send, stream, get, cancel, resubscribe, extended_card, list_tasks, push, errors]


async def main(url, transport, version):
    async with httpx.AsyncClient(timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        chosen = [it for it in card.supported_interfaces if it.protocol_version.startswith(version)]
        assert len(chosen) == 2, card.supported_interfaces
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(chosen)
        blocking, streaming = [
            ClientFactory(
                ClientConfig(
                    streaming=streams,
                    httpx_client=http,
                    supported_protocol_bindings=[transport],
                    use_client_preference=True,
                )
            ).create(card)
            for streams in (False, True)
        ]
        for check in CHECKS:
            await check(blocking, streaming)
            print("ok", check.__name__, flush=True)


asyncio.run(main(*sys.argv[1:4]))
