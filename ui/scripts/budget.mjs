// Fails when the chat page is larger than its budget: the entry and everything it imports statically, plus the chat screen.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const LIMIT_KB = 200;
const dist = new URL('../dist/', import.meta.url).pathname;
const path = join(dist, '.vite/manifest.json');
if (!existsSync(path)) {
  console.error('budget: no build in dist/; run `npm run build` first');
  process.exit(1);
}
const manifest = JSON.parse(readFileSync(path, 'utf8'));

/** The files that a browser loads for these entries. */
function closure(keys) {
  const files = new Set();
  const seen = new Set();
  const visit = (key) => {
    if (seen.has(key)) return;
    seen.add(key);
    const chunk = manifest[key];
    files.add(chunk.file);
    for (const css of chunk.css ?? []) files.add(css);
    for (const next of chunk.imports ?? []) visit(next);
  };
  keys.forEach(visit);
  return [...files];
}

const chat = Object.keys(manifest).filter((key) => key === 'index.html' || key.endsWith('screens/chat/ChatScreen.tsx'));
const files = closure(chat);
const bytes = files.reduce((sum, file) => sum + statSync(join(dist, `${file}.gz`)).size, 0);
const kb = bytes / 1000;
console.log(`budget: the chat page is ${kb.toFixed(1)} kB gzip of ${LIMIT_KB} kB (${files.length} files)`);
const heavy = files.filter((file) => /graph|xyflow|dagre/i.test(file));
if (heavy.length > 0) console.error(`budget: the chat page loads ${heavy.join(', ')}`);
process.exit(kb > LIMIT_KB || heavy.length > 0 ? 1 : 0);
