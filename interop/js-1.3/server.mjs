// An agent of A2A 1.0: node server.mjs PORT jsonrpc|rest
import { randomUUID } from 'node:crypto';
import express from 'express';
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const [port, transport] = [Number(process.argv[2]), process.argv[3]];
const cancelled = new Set();
const text = (words) => ({ content: { $case: 'text', value: words }, metadata: {}, filename: '', mediaType: 'text/plain' });

class Executor {
  async execute(context, bus) {
    const { taskId, contextId, task, userMessage } = context;
    const words = userMessage.parts.filter((part) => part.content?.$case === 'text').map((part) => part.content.value).join('\n');
    const status = (state, words) => {
      const message = words && {
        messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [text(words)], taskId, contextId,
        metadata: {}, extensions: [], referenceTaskIds: [],
      };
      bus.publish(AgentEvent.statusUpdate({
        taskId, contextId, metadata: {}, status: { state, message, timestamp: new Date().toISOString() },
      }));
    };
    const artifact = (artifactId, name, words, append) =>
      bus.publish(AgentEvent.artifactUpdate({
        taskId, contextId, append, lastChunk: append, metadata: {},
        artifact: { artifactId, name, description: '', parts: [text(words)], metadata: {}, extensions: [] },
      }));
    if (task) {
      artifact('c', 'choice', `You chose ${words}.`, false);
      status(TaskState.TASK_STATE_COMPLETED);
      bus.finished();
      return;
    }
    bus.publish(AgentEvent.task({
      id: taskId, contextId, artifacts: [], history: [userMessage], metadata: {},
      status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() },
    }));
    if (words.includes('please-ask')) {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which colour?');
    } else if (words.includes('please-fail')) {
      status(TaskState.TASK_STATE_FAILED, 'It broke.');
    } else if (words.includes('please-reject')) {
      status(TaskState.TASK_STATE_REJECTED, 'Not my job.');
    } else if (words.includes('please-wait')) {
      status(TaskState.TASK_STATE_WORKING);
      while (!cancelled.has(taskId)) await new Promise((done) => setTimeout(done, 50));
      status(TaskState.TASK_STATE_CANCELED);
    } else {
      status(TaskState.TASK_STATE_WORKING, 'Thinking.');
      artifact('a', 'echo', 'Echo: ', false);
      artifact('a', 'echo', words, true);
      status(TaskState.TASK_STATE_COMPLETED);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    cancelled.add(taskId);
  }
}

const card = {
  name: 'Echo 1.0', description: 'Repeats what it is told.', version: '1.0.0', provider: undefined,
  supportedInterfaces: [{
    url: `http://127.0.0.1:${port}/a2a`, protocolBinding: transport === 'jsonrpc' ? 'JSONRPC' : 'HTTP+JSON',
    tenant: '', protocolVersion: '1.0',
  }],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] }, securitySchemes: {}, securityRequirements: [],
  defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], signatures: [],
  skills: [{
    id: 'echo', name: 'Echo', description: 'Repeats.', tags: ['echo'], examples: [], inputModes: [], outputModes: [],
    securityRequirements: [],
  }],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a', transport === 'jsonrpc' ? jsonRpcHandler(options) : restHandler(options));
app.listen(port, '127.0.0.1');
