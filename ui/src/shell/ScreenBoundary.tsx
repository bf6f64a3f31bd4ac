import { Component, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { Button, ErrorNote } from '@/design';
import { Forbidden, isForbidden } from './Forbidden';
import styles from './ScreenBoundary.module.css';

/** Keeps a screen that fails from taking the others with it. Another address starts afresh. */
export function ScreenBoundary({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  return <Boundary location={location}>{children}</Boundary>;
}

interface BoundaryProps { location: string; children: ReactNode }
interface BoundaryState { error?: Error | undefined; location: string }

class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { location: this.props.location };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  /** The error belongs to the address at which it happened. */
  static getDerivedStateFromProps({ location }: BoundaryProps, state: BoundaryState): BoundaryState | null {
    return location === state.location ? null : { location, error: undefined };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    if (isForbidden(error)) return <Forbidden error={error} />;
    const reload = <Button size="small" onClick={() => window.location.reload()}>Reload</Button>;
    return (
      <div className={styles.failed}>
        {isMissingChunk(error)
          ? <ErrorNote title="This screen could not be loaded." action={reload}>The server may have been updated or is unreachable. Reload the page.</ErrorNote>
          : <ErrorNote title="This screen could not be shown." action={reload}>{error.message}</ErrorNote>}
      </div>
    );
  }
}

/** A screen is loaded when it is first opened; after an update of the server its old file is gone. */
function isMissingChunk(error: Error): boolean {
  return /dynamically imported module|importing a module script|preload CSS/i.test(error.message);
}
