"""An agent of A2A 0.3: server.py PORT jsonrpc|rest"""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task


def text(words):
    return Part(root=TextPart(text=words))


class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        words = context.get_user_input()
        task = context.current_task
        is_answer = task is not None
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        message = lambda words: updater.new_agent_message([text(words)])
        if is_answer:
            await updater.add_artifact([text(f"You chose {words}.")], name="choice")
            await updater.complete()
        elif "please-ask" in words:
            await updater.requires_input(message("Which colour?"), final=True)
        elif "please-fail" in words:
            await updater.failed(message("It broke."))
        elif "please-reject" in words:
            await updater.reject(message("Not my job."))
        elif "please-wait" in words:
            await updater.start_work()
            await asyncio.sleep(600)
        else:
            await updater.start_work(message("Thinking."))
            await updater.add_artifact([text("Echo: ")], artifact_id="a", name="echo", append=False)
            await updater.add_artifact([text(words)], artifact_id="a", append=True, last_chunk=True)
            await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


port, transport = int(sys.argv[1]), sys.argv[2]
card = AgentCard(
    name="Echo 0.3",
    description="Repeats what it is told.",
    url=f"http://127.0.0.1:{port}/",
    version="1.0.0",
    preferred_transport="JSONRPC" if transport == "jsonrpc" else "HTTP+JSON",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Repeats.", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
application = A2AStarletteApplication if transport == "jsonrpc" else A2ARESTFastAPIApplication
app = application(agent_card=card, http_handler=handler).build()
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
