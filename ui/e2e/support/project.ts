import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
export const binary = process.env.BATON_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(repository, 'target'), 'debug/baton');

/** A folder with the bundled agents and documents, and a configuration. */
export class Project {
  readonly dir = mkdtempSync(join(tmpdir(), 'baton-e2e-'));

  constructor(config = '', folders: { agents?: string } = {}) {
    copyMarkdown(folders.agents ?? join(repository, 'agents'), join(this.dir, 'agents'));
    copyMarkdown(join(repository, 'docs'), join(this.dir, 'docs'));
    writeFileSync(join(this.dir, 'baton.toml'), config);
  }

  write(path: string, content: string | Buffer): void {
    mkdirSync(join(this.dir, path, '..'), { recursive: true });
    writeFileSync(join(this.dir, path), content);
  }

  read(path: string): string {
    return readFileSync(join(this.dir, path), 'utf8');
  }

  /** A new API key, as an administrator makes one. */
  key(user: string, role: string, tenant = 'acme'): string {
    return this.run('keys', 'create', '--tenant', tenant, '--user', user, '--role', role).trim();
  }

  run(...args: string[]): string {
    return execFileSync(binary, args, { cwd: this.dir, encoding: 'utf8', env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The environment without Baton settings and provider keys. */
export function environment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^BATON_|_API_KEY$|_PROXY$/i.test(name));
  return Object.fromEntries(own);
}

function copyMarkdown(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from).filter((name) => name.endsWith('.md'))) cpSync(join(from, name), join(to, name));
}
