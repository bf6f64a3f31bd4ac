import { queryOptions } from '@tanstack/react-query';
import { byExpiry, unseen, type Approval, type Decision, type ListedApproval } from '@/approvals/record';
import { request } from './client';

const PAGE = 200;
/** What no event of this tab tells: requests and decisions of other conversations. */
const GLANCE = 15_000;

interface ApprovalPage { data: ListedApproval[]; next_cursor?: string | null }
interface ApprovalFilter { status?: 'pending' | 'decided'; thread_id?: string; order?: 'asc' | 'desc' }

/** The open approvals and questions, up to one page, those that expire first at the top. */
export function pendingApprovals() {
  return queryOptions({
    queryKey: ['approvals', 'pending'],
    queryFn: async () => {
      const page = await listApprovals({ status: 'pending', order: 'asc' });
      return { ...page, data: byExpiry(page.data) };
    },
    refetchInterval: GLANCE,
  });
}

/** How many wait, for the badge of the inbox and the title: `3`, or `200+`. Empty when there are none. `location` is that of the page. */
export function pendingApprovalCount(location: string) {
  const threadId = /^\/threads\/([^/]+)/.exec(location)?.[1];
  return queryOptions({
    ...pendingApprovals(),
    select: ({ data: approvals, next_cursor }) => {
      const count = unseen(approvals, threadId).length;
      return next_cursor ? `${PAGE}+` : count > 0 ? String(count) : '';
    },
  });
}

/** The newest page of those that are settled. */
export function decidedApprovals() {
  return queryOptions({ queryKey: ['approvals', 'decided'], queryFn: () => listApprovals({ status: 'decided', order: 'desc' }) });
}

export async function listApprovals(filter: ApprovalFilter): Promise<ApprovalPage> {
  const query = new URLSearchParams({ limit: String(PAGE), ...filter });
  const response = await request(`/api/v1/approvals?${query}`);
  return (await response.json()) as ApprovalPage;
}

/** The digest goes along: the decision holds for the call that was shown, and for no other. */
export async function decide({ approval_id, digest }: Approval, decision: Decision): Promise<Approval> {
  const response = await request(`/api/v1/approvals/${approval_id}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ ...decision, digest }) });
  return (await response.json()) as Approval;
}

/** Later calls of the tool in this conversation wait for a decision again. */
export async function forget({ thread_id, tool }: ListedApproval): Promise<void> {
  await request(`/api/v1/threads/${thread_id}/remembered/${encodeURIComponent(tool)}`, { method: 'DELETE' });
}
