import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { binary, environment, type Project } from './project';

/** The built server, on loopback, with its page. */
export class Baton {
  private process: ChildProcess | undefined;
  url = '';

  constructor(readonly project: Project) {}

  static async start(project: Project): Promise<Baton> {
    const baton = new Baton(project);
    await baton.start();
    return baton;
  }

  /** Starts it, the second time on the same port. */
  async start(): Promise<void> {
    const listen = this.url ? new URL(this.url).host : '127.0.0.1:0';
    const child = spawn(binary, ['serve', '--listen', listen], { cwd: this.project.dir, env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
    this.process = child;
    const log = createWriteStream(join(this.project.dir, 'server.log'), { flags: 'a' });
    child.stderr?.pipe(log);
    this.url = await firstLine(child);
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill('SIGKILL');
    this.project.remove();
  }

  /** The API, as a program uses it. */
  async call(method: string, path: string, body?: unknown, key?: string): Promise<any> {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json', ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const response = await fetch(this.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** Says something and waits for the answer. */
  say(thread: string, content: string, key?: string, agent?: string): Promise<any> {
    return this.call('POST', `/api/v1/threads/${thread}/messages`, { content, ...(agent ? { agent } : {}) }, key);
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    const end = text.indexOf('\n');
    if (end >= 0) {
      child.stdout?.resume();
      return text.slice(0, end).trim();
    }
  }
  throw new Error(`the server did not start (exit code ${child.exitCode}); is ${binary} built?`);
}
