import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { decideApproval, type Approval, type Decision } from '@/api/approvals';
import { api, data } from '@/api/client';

const PAGE = 200;
/** More than these are not shown. */
const MAX_PAGES = 2;

export const inboxQueries = {
  pending: () => queryOptions({ queryKey: ['approvals', 'inbox', 'pending'], queryFn: async () => byExpiry(await all('pending')), refetchInterval: 5_000 }),
  decided: () => queryOptions({ queryKey: ['approvals', 'inbox', 'decided'], queryFn: async () => newestFirst(await all('decided')) }),
};

async function all(status: 'pending' | 'decided'): Promise<Approval[]> {
  const approvals: Approval[] = [];
  let cursor: string | null | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = { limit: PAGE, status, order: 'desc' as const, ...(cursor && { cursor }) };
    const answer = await data(api.GET('/api/v1/approvals', { params: { query } }));
    approvals.push(...answer.data);
    cursor = answer.next_cursor;
    if (!cursor) break;
  }
  return approvals;
}

function byExpiry(approvals: Approval[]): Approval[] {
  return approvals.toSorted((left, right) => Date.parse(left.expires_at) - Date.parse(right.expires_at));
}

function newestFirst(approvals: Approval[]): Approval[] {
  return approvals.toSorted((left, right) => endOf(right) - endOf(left));
}

/** When it was decided, or when its time was over. */
export function endOf(approval: Approval): number {
  return Date.parse(approval.decided_at ?? approval.expires_at);
}

export function useDecide(approvalId: string, onDecided: (decision: Decision) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ decision, reason }: { decision: Decision; reason: string }) => decideApproval(approvalId, decision, reason),
    // After a refusal the card stays with the reason; the next reading of the list takes it away.
    onSuccess: (_, { decision }) => {
      onDecided(decision);
      return client.invalidateQueries({ queryKey: ['approvals'] });
    },
  });
}
