import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Ask { agent: string; system: string; last: string; isTool: boolean; messages: any[]; tools: string[] }
export interface Says { text?: string; call?: [tool: string, args: unknown]; calls?: [tool: string, args: unknown][] }
type Answer = (ask: Ask) => Says;

/** What stands in the prompt of an agent and of no other. */
const MARKS: [string, string][] = [
  ['assistant', 'You are the main assistant'],
  ['skill-creator', 'You build a skill together'],
  ['knowledge', 'You are the documentation specialist'],
];

/** A model behind the OpenAI protocol that says what a test has written down. It can be slow, and it can hang. */
export class Provider {
  private server: Server | undefined;
  private open = new Set<ServerResponse>();
  /** Milliseconds between two pieces of a text. */
  pace = 0;
  /** Agents whose answers begin and never end. */
  readonly hanging = new Set<string>();
  readonly asked: string[] = [];
  /** While held, texts stop after their first piece. */
  private hold: { wait: Promise<void>; release: () => void } | undefined;

  constructor(private readonly answer: Answer) {}

  static async start(answer: Answer): Promise<Provider> {
    const provider = new Provider(answer);
    provider.server = createServer((request, response) => void provider.serve(request, response));
    await new Promise<void>((resolve) => provider.server?.listen(0, '127.0.0.1', resolve));
    return provider;
  }

  get config(): string {
    const { port } = this.server?.address() as AddressInfo;
    // The script answers each message once, without the help that small models get.
    const assists = '[models.providers.local.models.m]\nassists = { workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }\n';
    return `[models]\ndefault = "local/m"\n[models.providers.local]\nbase_url = "http://127.0.0.1:${port}/v1"\n${assists}`;
  }

  /** Texts stop after their first piece until the returned function is called. */
  pause(): () => void {
    let release = () => {};
    const wait = new Promise<void>((resolve) => (release = resolve));
    this.hold = { wait, release };
    return () => {
      this.hold = undefined;
      release();
    };
  }

  async stop(): Promise<void> {
    this.hold?.release();
    for (const response of this.open) response.destroy();
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += chunk;
    const ask = read(JSON.parse(body || '{}'));
    // Not the questions about the model that a server asks when it starts.
    if (request.method === 'POST') this.asked.push(ask.agent);
    this.open.add(response);
    response.on('close', () => this.open.delete(response));
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    if (this.hanging.has(ask.agent)) return void response.write(frame({ content: 'I was about to' }));
    const { text = '', call, calls = call ? [call] : [] } = this.answer(ask);
    for (const [at, piece] of (text.match(/\S+\s*|\s+/g) ?? []).entries()) {
      response.write(frame({ content: piece }));
      if (this.pace > 0) await new Promise((resolve) => setTimeout(resolve, this.pace));
      if (at === 2) await this.hold?.wait;
      if (response.destroyed) return;
    }
    const tool_calls = calls.map(([name, args], index) => ({ index, id: `call_${ask.messages.length}_${index}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }));
    if (tool_calls.length > 0) response.write(frame({ tool_calls }));
    response.write(frame({}, tool_calls.length > 0 ? 'tool_calls' : 'stop'));
    response.write(`data: ${JSON.stringify({ id: '1', choices: [], usage: { prompt_tokens: 120, completion_tokens: 30 } })}\n\n`);
    response.end('data: [DONE]\n\n');
  }
}

function frame(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ id: '1', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}

function read(body: any): Ask {
  const messages: any[] = body.messages ?? [];
  const words = (message: any): string => (typeof message?.content === 'string' ? message.content : (message?.content ?? []).map((part: any) => part.text ?? '').join(''));
  const system = words(messages.find((message) => message.role === 'system'));
  const last = messages.at(-1);
  const agent = MARKS.find(([, mark]) => system.includes(mark))?.[0] ?? 'other';
  const tools = (body.tools ?? []).map((tool: any) => tool.function?.name);
  return { agent, system, last: words(last), isTool: last?.role === 'tool', messages, tools };
}
