// An agent of A2A 0.3: node server.mjs PORT jsonrpc|rest
import { randomUUID } from 'node:crypto';
import express from 'express';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const [port, transport] = [Number(process.argv[2]), process.argv[3]];
const cancelled = new Set();

class Executor {
  async execute(context, bus) {
    const { taskId, contextId, task, userMessage } = context;
    const words = userMessage.parts.filter((part) => part.kind === 'text').map((part) => part.text).join('\n');
    const text = (words) => ({ kind: 'text', text: words });
    const status = (state, words, final = true) => {
      const message = words && {
        kind: 'message', messageId: randomUUID(), role: 'agent', parts: [text(words)], taskId, contextId,
      };
      bus.publish({
        kind: 'status-update', taskId, contextId, final,
        status: { state, message, timestamp: new Date().toISOString() },
      });
    };
    const artifact = (artifact, append) =>
      bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk: append });
    if (!task) {
      bus.publish({
        kind: 'task', id: taskId, contextId, history: [userMessage],
        status: { state: 'submitted', timestamp: new Date().toISOString() },
      });
    }
    if (task) {
      artifact({ artifactId: 'c', name: 'choice', parts: [text(`You chose ${words}.`)] }, false);
      status('completed');
    } else if (words.includes('please-ask')) {
      status('input-required', 'Which colour?');
    } else if (words.includes('please-fail')) {
      status('failed', 'It broke.');
    } else if (words.includes('please-reject')) {
      status('rejected', 'Not my job.');
    } else if (words.includes('please-wait')) {
      status('working', undefined, false);
      while (!cancelled.has(taskId)) await new Promise((done) => setTimeout(done, 50));
      status('canceled');
    } else {
      status('working', 'Thinking.', false);
      artifact({ artifactId: 'a', name: 'echo', parts: [text('Echo: ')] }, false);
      artifact({ artifactId: 'a', parts: [text(words)] }, true);
      status('completed');
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    cancelled.add(taskId);
  }
}

const card = {
  name: 'Echo 0.3', description: 'Repeats what it is told.', protocolVersion: '0.3.0', version: '1.0.0',
  url: `http://127.0.0.1:${port}/a2a`, preferredTransport: transport === 'jsonrpc' ? 'JSONRPC' : 'HTTP+JSON',
  capabilities: { streaming: true }, defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Repeats.', tags: ['echo'] }],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a', transport === 'jsonrpc' ? jsonRpcHandler(options) : restHandler(options));
app.listen(port, '127.0.0.1');
