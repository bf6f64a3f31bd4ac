import type { Schemas } from './client';

/** The API's types under the names that the page uses. */
export type Me = Schemas['MeView'];
export type System = Schemas['SystemView'];
export type Roster = Schemas['RosterView'];
export type Diagnostic = Schemas['DiagnosticView'];
export type AgentView = Schemas['AgentView'];
export type AgentDetail = Schemas['AgentDetail'];
export type Thread = Schemas['ThreadView'];
export type ThreadContext = Schemas['ThreadContext'];
export type Message = Schemas['MessageView'];
export type HandoffNotice = Schemas['PastHandoff'];
export type ResumableHandoff = Schemas['ResumableView'];
export type Artifact = Schemas['ArtifactView'];
export type Run = Schemas['RunView'];
export type RunDetail = Schemas['RunDetail'];
export type RunStatus = Schemas['StatusView'];
export type Session = Schemas['SessionView'];
export type Steps = Schemas['RunSteps'];
export type Step = Schemas['StepView'];
export type Call = Schemas['CallView'];
export type Hop = Schemas['HopView'];
export type Usage = Schemas['UsageView'];
