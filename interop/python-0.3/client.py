"""Checks a server with the official Python SDK 0.3 as the client: `client.py URL TRANSPORT`."""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)

UNKNOWN = "019a0000-0000-7000-8000-000000000000"


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


CHECKS = [send, stream, get, cancel, resubscribe, extended_card, errors]


async def main(url, transport):
    async with httpx.AsyncClient(timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        transports = [TransportProtocol(transport)]
        blocking, streaming = [
            ClientFactory(
                ClientConfig(
                    streaming=streams, httpx_client=http, supported_transports=transports, use_client_preference=True
                )
            ).create(card)
            for streams in (False, True)
        ]
        for check in CHECKS:
            await check(blocking, streaming)
            print("ok", check.__name__, flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2]))
