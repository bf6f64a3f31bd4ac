import { Plus } from 'lucide-react';
import { describe, expect, it } from 'vitest';
import { groupCommands, type Command } from './commands';

const command = (group: string, title: string, more: Partial<Command> = {}): Command => ({ id: `${group}/${title}`, group, title, icon: Plus, run: () => {}, ...more });
const titles = (commands: Command[], query: string) => groupCommands(commands, query).map((group) => [group.title, ...group.commands.map(({ title }) => title)]);

describe('groupCommands', () => {
  it('keeps the order of groups and commands without a query', () => {
    const commands = [command('Actions', 'New conversation'), command('Screens', 'Runs'), command('Screens', 'Agents')];
    expect(titles(commands, '')).toEqual([['Actions', 'New conversation'], ['Screens', 'Runs', 'Agents']]);
  });

  it('puts the group with the best match first', () => {
    const commands = [command('Conversations', 'A truncated unit test'), command('Screens', 'Runs')];
    expect(titles(commands, 'run')[0]).toEqual(['Screens', 'Runs']);
  });

  it('finds by keywords, after titles', () => {
    const commands = [command('Screens', 'Usage', { keywords: 'cost money' }), command('Agents', 'Cost advisor')];
    expect(titles(commands, 'cost')).toEqual([['Agents', 'Cost advisor'], ['Screens', 'Usage']]);
  });

  it('keeps what the server found by other means', () => {
    expect(titles([command('Conversations', 'Greeting', { isFound: true })], 'deploy')).toEqual([['Conversations', 'Greeting']]);
  });

  it('drops what does not match and limits a group', () => {
    expect(titles([command('Screens', 'Runs')], 'zzz')).toEqual([]);
    expect(groupCommands(Array.from({ length: 20 }, (_, at) => command('Agents', `Agent ${at}`)), 'agent')[0]?.commands).toHaveLength(10);
  });
});
