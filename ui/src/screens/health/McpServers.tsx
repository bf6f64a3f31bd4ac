import type { Schemas } from '@/api/client';
import { Badge, Card, type Tone } from '@/design';
import { plural } from '@/lib/format';
import styles from './HealthScreen.module.css';

type McpServer = Schemas['McpServerView'];

const STATES: Record<McpServer['state'], { label: string; tone: Tone; title: string }> = {
  running: { label: 'Running', tone: 'success', title: 'Connected' },
  idle: { label: 'Idle', tone: 'neutral', title: 'Starts when an agent needs it' },
  failed: { label: 'Failed', tone: 'danger', title: 'Could not be started or reached' },
};

export function McpServers({ servers }: { servers: McpServer[] }) {
  return (
    <Card>
      <div className={styles.head}><h2>MCP servers</h2></div>
      {servers.length === 0 && <p className="soft">None is configured. Name tool servers in <code>.mcp.json</code>, and agents can use their tools.</p>}
      <ul className={styles.list}>
        {servers.map((server) => {
          const state = STATES[server.state];
          return (
            <li key={server.name} className={styles.item}>
              <span className={styles.name}>{server.name}</span>
              <span className={styles.side}>
                {server.tools !== undefined && <span className="tabular">{plural(server.tools, 'tool')}</span>}
                <code>{server.transport}</code>
                <Badge tone={state.tone} title={state.title}>{state.label}</Badge>
              </span>
              {server.error && <p className={styles.error}>{server.error}</p>}
            </li>
          );
        })}
      </ul>
    </Card>
  );
}
