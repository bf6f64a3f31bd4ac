import { Component, type ReactNode } from 'react';
import { Button, ErrorNote } from '@/design';

/** Keeps a screen that fails from taking the others with it. */
export class ScreenBoundary extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    const reload = <Button size="small" onClick={() => location.reload()}>Reload</Button>;
    return <ErrorNote title="This screen could not be shown." action={reload}>{this.state.error.message}</ErrorNote>;
  }
}
