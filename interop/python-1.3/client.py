"""Checks a server with the official Python SDK 1.3 as the client: `client.py URL TRANSPORT VERSION`."""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError

UNKNOWN = "019a0000-0000-7000-8000-000000000000"


def request(text, immediately=False, **more):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(return_immediately=immediately)
    )


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


CHECKS = [send, stream, get, cancel, resubscribe, extended_card, list_tasks, errors]


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
