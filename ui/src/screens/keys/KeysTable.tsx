import { Ban, CircleCheck, Clock } from 'lucide-react';
import { useState } from 'react';
import { Badge, Button, Table, Time, type Column } from '@/design';
import { absolute } from '@/lib/format';
import { dateOf, STATUS, type Key } from './data';
import styles from './Keys.module.css';
import { RevokeKey } from './RevokeKey';

const ICONS = { active: CircleCheck, expired: Clock, revoked: Ban };

export function KeysTable({ keys }: { keys: Key[] }) {
  const [revoking, setRevoking] = useState<Key>();
  const columns: Column<Key>[] = [
    { key: 'name', title: 'Name', cell: (key) => <Name of={key} /> },
    { key: 'user', title: 'User', wide: true, cell: (key) => <span className={styles.user} dir="auto">{key.user_id}</span> },
    { key: 'roles', title: 'Allows', wide: true, cell: (key) => <Allows of={key} /> },
    { key: 'created', title: 'Created', wide: true, cell: (key) => <Time at={key.created_at} /> },
    { key: 'used', title: 'Last used', wide: true, cell: (key) => <LastUse of={key} otherwise="Never" /> },
    { key: 'expires', title: 'Expires', wide: true, cell: (key) => <Expiry of={key} otherwise="Never" /> },
    { key: 'status', title: 'Status', cell: (key) => <Status of={key} /> },
    { key: 'revoke', title: '', cell: (key) => key.status !== 'revoked' && <Button size="small" kind="danger" aria-label={`Revoke ${key.name || key.prefix}`} onClick={() => setRevoking(key)}>Revoke</Button> },
  ];
  return (
    <>
      <Table label="API keys" columns={columns} rows={keys} rowKey={(key) => key.key_id} />
      {revoking && <RevokeKey of={revoking} onClose={() => setRevoking(undefined)} />}
    </>
  );
}

/** The name and the beginning of the key; on narrow screens also what the other columns say. */
function Name({ of: key }: { of: Key }) {
  return (
    <span className={styles.name}>
      <strong dir="auto">{key.name || 'Unnamed'}</strong>
      <code>{key.prefix}…</code>
      <span className={styles.narrow}>
        <span dir="auto">{key.user_id}</span>
        <Allows of={key} />
        <span className="faint">Last used: <LastUse of={key} otherwise="never" /></span>
        <span className="faint">Expires: <Expiry of={key} otherwise="never" /></span>
      </span>
    </span>
  );
}

function Allows({ of: { roles, scopes } }: { of: Key }) {
  return (
    <span className={styles.allows}>
      {roles.map((role) => <Badge key={role}>{role}</Badge>)}
      {scopes && <span className={styles.scopes}>only {scopes.map((scope) => <code key={scope}>{scope}</code>)}</span>}
    </span>
  );
}

function LastUse({ of: { last_used_at }, otherwise }: { of: Key; otherwise: string }) {
  return last_used_at ? <Time at={last_used_at} /> : <span className="faint">{otherwise}</span>;
}

/** A date: times relative to now are for the past. */
function Expiry({ of: { expires_at }, otherwise }: { of: Key; otherwise: string }) {
  if (!expires_at) return <span className="faint">{otherwise}</span>;
  return <time dateTime={expires_at} title={absolute(new Date(expires_at))}>{dateOf(expires_at)}</time>;
}

function Status({ of: { status } }: { of: Key }) {
  const Icon = ICONS[status];
  return <Badge tone={STATUS[status].tone}><Icon size={12} aria-hidden />{STATUS[status].label}</Badge>;
}
