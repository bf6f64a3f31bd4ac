import { expect, it } from 'vitest';
import { agentOf } from './agentOf';

it.each([
  ['assistant/turn:1/tool:1', 'assistant'],
  ['assistant/advisor:legal/turn:2/tool:1', 'legal'],
  ['assistant/turn:2/tool:1/call:research/turn:1/tool:1', 'research'],
  ['team/round:1/member:critic/turn:1/tool:2', 'critic'],
  ['assistant', 'assistant'],
])('names the agent of %s', (path, agent) => {
  expect(agentOf(path)).toBe(agent);
});
