// Checks a server with the official JavaScript SDK 1.3 as the client: `client.mjs PACKAGES URL TRANSPORT VERSION`.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';

const [packages, url, transport, version] = process.argv.slice(2);
const folder = `${packages}/node_modules/@a2a-js/sdk/dist`;
const sdk = await import(`${folder}/client/index.js`);
const types = await import(`${folder}/index.js`);
const { SendMessageRequest, StreamResponse, TaskPushNotificationConfig, TaskState } = types;

const UNKNOWN = '019a0000-0000-7000-8000-000000000000';

/// Receives push notifications on a free port.
class Receiver {
  deliveries = [];

  async start() {
    this.server = createServer(async (request, response) => {
      const chunks = await request.toArray();
      const body = JSON.parse(Buffer.concat(chunks).toString());
      this.deliveries.push([request.headers['x-a2a-notification-token'], body]);
      response.writeHead(204).end();
    });
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    this.url = `http://127.0.0.1:${this.server.address().port}/notify`;
    return this;
  }

  /// Waits until each token has come with a task that is completed.
  async untilCompleted(isCompleted, tokens) {
    const deadline = Date.now() + 20_000;
    for (;;) {
      const completed = this.deliveries.filter(([, body]) => isCompleted(body)).map(([token]) => token);
      if (tokens.every((token) => completed.includes(token))) return;
      assert.ok(Date.now() < deadline, `no task is completed: ${JSON.stringify(this.deliveries)}`);
      await setTimeout(50);
    }
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}

const params = (text, more = {}, configuration = {}) =>
  SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
    configuration: { returnImmediately: false, ...configuration },
  });

const textOf = (parts) => parts.map((part) => (part.content?.$case === 'text' ? part.content.value : '')).join('');

/// The item of a stream, or the result of a call, with the name of its member.
const member = (event) => (event.payload ? [event.payload.$case, event.payload.value] : ['task', event]);

async function collect(events) {
  const found = [];
  for await (const event of events) found.push(member(event));
  return found;
}

function assembled(events) {
  let text = '';
  for (const [kind, value] of events) {
    if (kind === 'task' && value.artifacts.length) text = textOf(value.artifacts.at(-1).parts);
    if (kind !== 'artifactUpdate') continue;
    const chunk = textOf(value.artifact.parts);
    text = value.append ? text + chunk : chunk;
  }
  return text;
}

const sendTask = async (client, ...args) => member(await client.sendMessage(params(...args)))[1];

async function send(client) {
  const task = await sendTask(client, 'hello');
  assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(textOf(task.artifacts[0].parts), 'Good morning.');
}

async function stream(client) {
  const events = await collect(client.sendMessageStream(params('hello')));
  assert.equal(events[0][0], 'task');
  assert.equal(events.at(-1)[1].status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(assembled(events), 'Good morning.');
}

async function get(client) {
  const sent = await sendTask(client, 'hello');
  const task = await client.getTask({ tenant: '', id: sent.id, historyLength: 1 });
  assert.equal(task.id, sent.id);
  assert.equal(task.history.length, 1);
}

const begin = (client) => sendTask(client, 'slow', {}, { returnImmediately: true });

async function cancel(client) {
  const task = await begin(client);
  const cancelled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
  assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
}

async function resubscribe(client) {
  const task = await begin(client);
  const events = await collect(client.resubscribeTask({ tenant: '', id: task.id }));
  assert.equal(events.at(-1)[1].status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(assembled(events), 'Good morning.');
}

async function extendedCard(client) {
  const card = await client.getAgentCard();
  assert.ok(card.capabilities.extendedAgentCard && card.skills.length > 0);
}

async function push(client) {
  const receiver = await new Receiver().start();
  const config = (id, taskId) =>
    TaskPushNotificationConfig.fromJSON({ id, taskId, url: receiver.url, token: `token-${id}` });
  const sent = TaskPushNotificationConfig.toJSON(config('sent'));
  const task = await sendTask(client, 'slow', {}, { returnImmediately: true, taskPushNotificationConfig: sent });
  for (const id of ['added', 'deleted']) {
    assert.deepEqual(await client.createTaskPushNotificationConfig(config(id, task.id)), config(id, task.id));
  }
  for (const id of ['sent', 'added', 'deleted']) {
    const found = await client.getTaskPushNotificationConfig({ tenant: '', taskId: task.id, id });
    assert.deepEqual(found, config(id, task.id));
  }
  const listed = async () => {
    const query = { tenant: '', taskId: task.id, pageSize: 0, pageToken: '' };
    const { configs } = await client.listTaskPushNotificationConfig(query);
    return configs.map((it) => it.id).sort();
  };
  assert.deepEqual(await listed(), ['added', 'deleted', 'sent']);
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'deleted' });
  assert.deepEqual(await listed(), ['added', 'sent']);
  const isCompleted = (body) => {
    if (version === '0.3') {
      assert.deepEqual([body.kind, body.id], ['task', task.id]);
      return body.status.state === 'completed';
    }
    const [kind, told] = member(StreamResponse.fromJSON(body));
    assert.deepEqual([kind, told.id], ['task', task.id]);
    return told.status.state === TaskState.TASK_STATE_COMPLETED;
  };
  await receiver.untilCompleted(isCompleted, ['token-sent', 'token-added']);
  receiver.stop();
}

async function errors(client) {
  const named = (reason) => (error) => {
    const all = `${error.name} ${error.constructor.name} ${error.reason} ${error.code} ${error.message}`;
    assert.ok(all.includes(reason), all);
    return true;
  };
  await assert.rejects(client.getTask({ tenant: '', id: UNKNOWN }), named('TaskNotFound'));
  const done = await sendTask(client, 'hello');
  await assert.rejects(client.cancelTask({ tenant: '', id: done.id }), named('TaskNotCancelable'));
  await assert.rejects(client.sendMessage(params('more', { taskId: done.id, contextId: done.contextId })), /ended/);
}

const CHECKS = [send, stream, get, cancel, resubscribe, extendedCard, push, errors];

const legacyCompat = { enabled: version === '0.3' };
const factory = new sdk.ClientFactory({
  transports: [new sdk.JsonRpcTransportFactory({ legacyCompat }), new sdk.RestTransportFactory({ legacyCompat })],
  preferredTransports: [transport],
});
const card = await new sdk.DefaultAgentCardResolver({ legacyCompat }).resolve(`${url}/`);
card.supportedInterfaces = card.supportedInterfaces.filter((it) => it.protocolVersion.startsWith(version));
assert.equal(card.supportedInterfaces.length, 2);
const client = await factory.createFromAgentCard(card);
for (const check of CHECKS) {
  await check(client);
  console.log('ok', check.name);
}
