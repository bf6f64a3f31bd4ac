import type { System } from '@/api/types';
import { Badge, Card, CopyButton, Notice } from '@/design';
import styles from './HealthScreen.module.css';

const EXAMPLE = `export ANTHROPIC_API_KEY=…

# baton.toml
[models]
default = "anthropic/claude-sonnet-4-5"`;

/** The default model and the providers, with or without a key. Keys themselves are never sent to the page. */
export function ModelCard({ system }: { system: System }) {
  return (
    <Card>
      <div className={styles.head}><h2>Models</h2><span className="soft">Default: <code>{system.default_model}</code></span></div>
      {system.offline && <OfflineNotice />}
      {system.providers.length > 0 && (
        <ul className={styles.list}>
          {system.providers.map((provider) => (
            <li key={provider.name} className={styles.item}>
              <span className={styles.name}>{provider.name}</span>
              <span className={styles.side}>
                {provider.key_variable && <code>{provider.key_variable}</code>}
                <Badge tone={provider.configured ? 'success' : 'neutral'}>{provider.configured ? 'Configured' : provider.key_variable ? 'No key' : 'Not configured'}</Badge>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function OfflineNotice() {
  return (
    <div className={styles.offline}>
      <Notice tone="info">
        <p><strong>The offline model answers.</strong> It follows rules and quotes your documents; no language model is asked.</p>
        <p>To use one, set a provider’s key, name the model in <code>baton.toml</code> and start the server again:</p>
        <div className={styles.snippet}>{EXAMPLE}<span className={styles.copy}><CopyButton text={EXAMPLE} label="Copy the example" /></span></div>
      </Notice>
    </div>
  );
}
