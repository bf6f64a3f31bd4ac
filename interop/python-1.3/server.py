"""An agent of A2A 1.0: server.py PORT jsonrpc|rest"""

import asyncio
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        words = context.get_user_input()
        task = context.current_task
        is_answer = task is not None
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        message = lambda words: updater.new_agent_message([new_text_part(words)])
        if is_answer:
            await updater.add_artifact([new_text_part(f"You chose {words}.")], name="choice")
            await updater.complete()
        elif "please-ask" in words:
            await updater.requires_input(message("Which colour?"))
        elif "please-fail" in words:
            await updater.failed(message("It broke."))
        elif "please-reject" in words:
            await updater.reject(message("Not my job."))
        elif "please-wait" in words:
            await updater.start_work()
            await asyncio.sleep(600)
        else:
            await updater.start_work(message("Thinking."))
            await updater.add_artifact([new_text_part("Echo: ")], artifact_id="a", name="echo", append=False)
            await updater.add_artifact([new_text_part(words)], artifact_id="a", append=True, last_chunk=True)
            await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


port, transport = int(sys.argv[1]), sys.argv[2]
binding = "JSONRPC" if transport == "jsonrpc" else "HTTP+JSON"
card = AgentCard(
    name="Echo 1.0",
    description="Repeats what it is told.",
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(url=f"http://127.0.0.1:{port}/rpc", protocol_binding=binding, protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Repeats.", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card)
if transport == "jsonrpc":
    routes = create_jsonrpc_routes(handler, "/rpc")
else:
    routes = create_rest_routes(handler, path_prefix="/rpc")
app = Starlette(routes=create_agent_card_routes(card) + routes)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
