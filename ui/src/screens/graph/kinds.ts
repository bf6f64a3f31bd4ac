import type { Schemas } from '@/api/client';

export type EdgeKind = Schemas['EdgeBody']['kind'];

interface KindStyle {
  /** The short name for labels and the legend. */
  label: string;
  /** `assistant` *calls* `knowledge`. */
  verb: string;
  /** `knowledge` is *called by* `assistant`. */
  passive: string;
  /** What it means, in one sentence. */
  meaning: string;
  /** SVG dash pattern; none is a solid line. */
  dash?: string;
  width: number;
}

/** How one agent may involve another. The line's pattern and the label both tell the kinds apart. */
export const KINDS: Record<EdgeKind, KindStyle> = {
  call: { label: 'Call', verb: 'Calls', passive: 'Called by', meaning: 'Delegates a task and keeps the conversation.', dash: '7 5', width: 1.5 },
  transfer: { label: 'Transfer', verb: 'May transfer to', passive: 'Receives transfers from', meaning: 'Passes the conversation on when the model decides so.', width: 1.5 },
  handoff: { label: 'Chain', verb: 'Hands off to', passive: 'Finishes for', meaning: 'The next agent always gives the final answer.', width: 3 },
  route: { label: 'Route', verb: 'Routes to', passive: 'Gets requests from', meaning: 'A router chooses who handles the request.', dash: '14 4 3 4', width: 1.5 },
  member: { label: 'Team', verb: 'Leads in a team', passive: 'Team member of', meaning: 'Discusses with the other members; the coordinator answers.', dash: '3 3 9 3', width: 2 },
  advise: { label: 'Advisor', verb: 'Consults', passive: 'Advises', meaning: 'Gives advice before each answer.', dash: '1.5 4.5', width: 2 },
  button: { label: 'Button', verb: 'Offers a button to', passive: 'Offered as a button by', meaning: 'The person can start this handoff with a button.', dash: '16 6', width: 1.5 },
};

export const KIND_IDS = Object.keys(KINDS) as EdgeKind[];

export function isKind(text: string): text is EdgeKind {
  return text in KINDS;
}
