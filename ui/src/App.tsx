import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { queries } from './api/queries';
import { useSessionState } from './api/session';
import { ChatScreen } from './screens/chat/ChatScreen';
import { NotFound } from './shell/NotFound';
import { ScreenBoundary } from './shell/ScreenBoundary';
import { ScreenSkeleton } from './shell/ScreenSkeleton';
import { Shell } from './shell/Shell';
import { SignIn } from './shell/SignIn';

/** Only the chat is part of the first load. */
const AgentsScreen = lazy(() => import('./screens/agents/AgentsScreen'));
const AgentScreen = lazy(() => import('./screens/agents/AgentScreen'));
const GraphScreen = lazy(() => import('./screens/graph/GraphScreen'));
const RunsScreen = lazy(() => import('./screens/runs/RunsScreen'));
const RunScreen = lazy(() => import('./screens/runs/RunScreen'));
const InboxScreen = lazy(() => import('./screens/inbox/InboxScreen'));
const SkillsScreen = lazy(() => import('./screens/skills/SkillsScreen'));
const UsageScreen = lazy(() => import('./screens/usage/UsageScreen'));
const PatternsScreen = lazy(() => import('./screens/patterns/PatternsScreen'));
const AuditScreen = lazy(() => import('./screens/audit/AuditScreen'));
const KeysScreen = lazy(() => import('./screens/keys/KeysScreen'));
const HealthScreen = lazy(() => import('./screens/health/HealthScreen'));

export function App() {
  const session = useSessionState();
  const me = useQuery(queries.me());
  if (session === 'left') return null;
  if (session === 'rejected') return <SignIn />;
  return (
    <Shell me={me.data}>
      <ScreenBoundary>
        <Suspense fallback={<ScreenSkeleton />}>
          <Switch>
            <Route path="/">{() => <ChatScreen />}</Route>
            <Route path="/threads/:threadId">{({ threadId }) => <ChatScreen threadId={threadId} />}</Route>
            <Route path="/agents"><AgentsScreen /></Route>
            <Route path="/agents/:agentId">{({ agentId }) => <AgentScreen agentId={agentId} />}</Route>
            <Route path="/graph"><GraphScreen /></Route>
            <Route path="/runs"><RunsScreen /></Route>
            <Route path="/runs/:runId">{({ runId }) => <RunScreen runId={runId} />}</Route>
            <Route path="/inbox"><InboxScreen /></Route>
            <Route path="/skills"><SkillsScreen /></Route>
            <Route path="/skills/:name">{({ name }) => <SkillsScreen name={name} />}</Route>
            <Route path="/usage"><UsageScreen /></Route>
            <Route path="/patterns"><PatternsScreen /></Route>
            <Route path="/audit"><AuditScreen /></Route>
            <Route path="/keys"><KeysScreen /></Route>
            <Route path="/health"><HealthScreen /></Route>
            <Route><NotFound /></Route>
          </Switch>
        </Suspense>
      </ScreenBoundary>
    </Shell>
  );
}
