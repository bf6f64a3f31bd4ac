// Checks a server with the official JavaScript SDK 0.3 as the client: `client.mjs PACKAGES URL TRANSPORT`.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';

const [packages, url, transport] = process.argv.slice(2);
const sdk = await import(`${packages}/node_modules/@a2a-js/sdk/dist/client/index.js`);
const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } = sdk;

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

const params = (text, more = {}, configuration = {}) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...more },
  configuration: { blocking: true, ...configuration },
});

const textOf = (parts) => parts.map((part) => part.text ?? '').join('');

async function collect(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

function assembled(events) {
  let text = '';
  for (const event of events) {
    if (event.kind === 'task' && event.artifacts?.length) text = textOf(event.artifacts.at(-1).parts);
    if (event.kind !== 'artifact-update') continue;
    const chunk = textOf(event.artifact.parts);
    text = event.append ? text + chunk : chunk;
  }
  return text;
}

async function send(client) {
  const task = await client.sendMessage(params('hello'));
  assert.equal(task.status.state, 'completed');
  assert.equal(textOf(task.artifacts[0].parts), 'Good morning.');
}

async function stream(client) {
  const events = await collect(client.sendMessageStream(params('hello')));
  assert.equal(events[0].kind, 'task');
  assert.equal(events.at(-1).status.state, 'completed');
  assert.equal(events.at(-1).final, true);
  assert.equal(assembled(events), 'Good morning.');
}

async function get(client) {
  const sent = await client.sendMessage(params('hello'));
  const task = await client.getTask({ id: sent.id, historyLength: 1 });
  assert.equal(task.id, sent.id);
  assert.equal(task.history.length, 1);
}

const begin = (client) => client.sendMessage(params('slow', {}, { blocking: false }));

async function cancel(client) {
  const task = await begin(client);
  const cancelled = await client.cancelTask({ id: task.id });
  assert.equal(cancelled.status.state, 'canceled');
}

async function resubscribe(client) {
  const task = await begin(client);
  const events = await collect(client.resubscribeTask({ id: task.id }));
  assert.equal(events.at(-1).status.state, 'completed');
  assert.equal(assembled(events), 'Good morning.');
}

async function extendedCard(client) {
  const card = await client.getAgentCard();
  assert.ok(card.supportsAuthenticatedExtendedCard && card.skills.length > 0);
}

async function push(client) {
  const receiver = await new Receiver().start();
  const config = (id) => ({ id, url: receiver.url, token: `token-${id}` });
  const task = await client.sendMessage(
    params('slow', {}, { blocking: false, pushNotificationConfig: config('sent') }),
  );
  const of = (id) => ({ taskId: task.id, pushNotificationConfig: config(id) });
  for (const id of ['added', 'deleted']) {
    assert.deepEqual(plain(await client.setTaskPushNotificationConfig(of(id))), of(id));
  }
  for (const id of ['sent', 'added', 'deleted']) {
    const query = { id: task.id, pushNotificationConfigId: id };
    assert.deepEqual(plain(await client.getTaskPushNotificationConfig(query)), of(id));
  }
  const listed = async () => {
    const found = await client.listTaskPushNotificationConfig({ id: task.id });
    return found.map((it) => it.pushNotificationConfig.id).sort();
  };
  assert.deepEqual(await listed(), ['added', 'deleted', 'sent']);
  await client.deleteTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: 'deleted' });
  assert.deepEqual(await listed(), ['added', 'sent']);
  const isCompleted = (body) => {
    assert.deepEqual([body.kind, body.id], ['task', task.id]);
    return body.status.state === 'completed';
  };
  await receiver.untilCompleted(isCompleted, ['token-sent', 'token-added']);
  receiver.stop();
}

/// Without the members that are undefined.
const plain = (value) => JSON.parse(JSON.stringify(value));

async function errors(client) {
  const named = (name) => (error) => {
    assert.ok(error.constructor.name.includes(name) || String(error.message).includes(name), error);
    return true;
  };
  await assert.rejects(client.getTask({ id: UNKNOWN }), named('TaskNotFound'));
  const done = await client.sendMessage(params('hello'));
  await assert.rejects(client.cancelTask({ id: done.id }), named('TaskNotCancelable'));
  await assert.rejects(client.sendMessage(params('more', { taskId: done.id, contextId: done.contextId })), /ended/);
}

const CHECKS = [send, stream, get, cancel, resubscribe, extendedCard, push, errors];

const transports = [new JsonRpcTransportFactory(), new RestTransportFactory()];
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [transport] });
const factory = new ClientFactory({ ...options, transports });
const client = await factory.createFromUrl(`${url}/`);
for (const check of CHECKS) {
  await check(client);
  console.log('ok', check.name);
}
