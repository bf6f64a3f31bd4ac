import { queryOptions } from '@tanstack/react-query';
import { api, data, type Schemas } from './client';

export type Approval = Schemas['ApprovalView'];
export type Decision = Schemas['Decision'];

const PAGE = 50;

/** The approvals that wait for a decision, up to one page. */
export function pendingApprovals() {
  return queryOptions({
    queryKey: ['approvals', 'pending'],
    queryFn: () => data(api.GET('/api/v1/approvals', { params: { query: { status: 'pending', limit: PAGE } } })),
    refetchInterval: 10_000,
  });
}

/** How many approvals wait, for the badge of the inbox: `3`, or `50+`. Empty when there are none. */
export function pendingApprovalCount() {
  return queryOptions({
    ...pendingApprovals(),
    select: ({ data: approvals, next_cursor }) => (next_cursor ? `${PAGE}+` : approvals.length > 0 ? String(approvals.length) : ''),
  });
}

export function decideApproval(approvalId: string, decision: Decision, reason = '') {
  return data(api.POST('/api/v1/approvals/{approval_id}', { params: { path: { approval_id: approvalId } }, body: { decision, ...(reason && { reason }) } }));
}
