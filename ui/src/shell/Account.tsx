import { LogOut } from 'lucide-react';
import { signOut } from '@/api/session';
import type { Me } from '@/api/types';
import { firstCharacter, IconButton } from '@/design';
import styles from './Account.module.css';
import { ThemeSwitch } from './ThemeSwitch';

/** Signs out: the page is emptied at once and loaded anew, so that nothing of the last user stays in memory. */
export function signOutAndReload(): void {
  signOut();
  location.assign('/');
}

/** Who is signed in, for which tenant. Open mode has nothing to sign out of. */
export function Account({ me }: { me: Me | undefined }) {
  return (
    <div className={styles.account}>
      <span className={styles.avatar} aria-hidden>{me && firstCharacter(me.user_id).toUpperCase()}</span>
      <div className={styles.who} title={me && `${me.user_id} · ${me.tenant_id} · ${me.roles.join(', ') || 'no role'}`}>
        <span className={`${styles.user} truncate`} dir="auto">{me?.user_id ?? '\u00a0'}</span>
        <span className={`${styles.tenant} truncate`} dir="auto">{me?.tenant_id ?? '\u00a0'}</span>
      </div>
      <ThemeSwitch />
      {me?.auth === 'required' && <IconButton icon={LogOut} label="Sign out" size="small" onClick={signOutAndReload} />}
    </div>
  );
}
