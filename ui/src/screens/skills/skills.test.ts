import { describe, expect, it } from 'vitest';
import { metadataOf, parseSkill, triggersOf } from './frontmatter';
import { fileProblems, headProblems } from './validity';

const text = `---
name: slack-alert
description: >
  Sends an alert to Slack.
  Use it when something fails.
license: "MIT"
allowed-tools: Bash(git:*) Read
metadata:
  version: "1.0"
  baton.triggers: "notify slack; send an alert"
---

# Slack alert

Do it.
`;

describe('parseSkill', () => {
  it('reads the fields and the body', () => {
    const file = parseSkill(text);
    expect(file.fields.description).toBe('Sends an alert to Slack. Use it when something fails.');
    expect(file.fields.license).toBe('MIT');
    expect(file.fields.metadata).toEqual({ version: '1.0', 'baton.triggers': 'notify slack; send an alert' });
    expect(file.body).toBe('# Slack alert\n\nDo it.\n');
    expect(triggersOf(file)).toEqual(['notify slack', 'send an alert']);
    expect(metadataOf(file, 'version')).toBe('1.0');
  });

  it('reads lists, with CRLF and without a body', () => {
    const { fields } = parseSkill('---\r\nname: a\r\nallowed-tools:\r\n  - Read\r\n  - "Write"\r\ntriggers: [x, \'y\']\r\n---');
    expect(fields).toEqual({ name: 'a', 'allowed-tools': ['Read', 'Write'], triggers: ['x', 'y'] });
  });

  it('takes a file without frontmatter as it is', () => {
    expect(parseSkill('# Hi')).toEqual({ fields: {}, body: '# Hi', hasFrontmatter: false });
  });
});

describe('validity', () => {
  it('accepts a skill that follows the rules', () => {
    expect(fileProblems('slack-alert', parseSkill(text))).toEqual([]);
  });

  it('names what is wrong', () => {
    expect(headProblems({ name: 'Slack--Alert', description: '' })).toHaveLength(2);
    expect(headProblems({ name: 'a'.repeat(65), description: 'x'.repeat(1025) })).toHaveLength(2);
    expect(fileProblems('other', parseSkill(text))).toEqual(['The name in the file is “slack-alert”, not “other”.']);
    expect(fileProblems('a', parseSkill('---\nname: a\ndescription: b\nmodel: x\n---\n'))).toEqual(['Keys that other tools refuse: model.']);
    expect(fileProblems('a', parseSkill('text'))).toHaveLength(1);
  });
});
