import { useMutation, useQueryClient } from '@tanstack/react-query';
import { decide } from '@/api/approvals';
import { Problem, sentence } from '@/api/problem';
import type { Errors } from './draft';
import type { Approval, ApprovalStatus, Decision } from './record';

export interface DecisionState {
  decide: (decision: Decision) => void;
  /** The decision that is being sent. */
  pending: Decision | undefined;
  /** Why it was refused, in one sentence. */
  problem: string | undefined;
  /** What the server found wrong with the values, by field. */
  errors: Errors | undefined;
}

/**
 * Sends a decision. `onChange` gets the record as it is then, also if someone else has decided in the meantime or the time was over. One
 * that is gone, as with its conversation, is reported without a record.
 */
export function useDecision(approval: Approval, onChange: (now: Approval | undefined, isMine: boolean) => void): DecisionState {
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: (decision: Decision) => decide(approval, decision),
    onSuccess: (now) => onChange(now, true),
    onError: (error) => {
      if (!(error instanceof Problem)) return;
      const status = settledAs(error);
      if (status) onChange({ ...approval, status }, false);
      else if (error.status === 404) onChange(undefined, false);
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }),
  });
  const { error } = send;
  return { decide: send.mutate, pending: send.isPending ? send.variables : undefined, problem: error ? sentence(error) : undefined, errors: fieldErrors(error) };
}

/** How it was settled, if that is why the decision was refused. Who did it, the stream tells. */
function settledAs({ status, code, body }: Problem): ApprovalStatus | undefined {
  if (status !== 409) return undefined;
  if (code === 'approval_expired') return 'expired';
  return code === 'approval_decided' ? (body.approval_status as ApprovalStatus | undefined) : undefined;
}

/** The server points into the body of the request; the form begins below `arguments` or `answer`. */
function fieldErrors(error: unknown): Errors | undefined {
  const list = error instanceof Problem && Array.isArray(error.body.errors) ? (error.body.errors as { pointer?: string; detail?: string }[]) : [];
  const found = list.map(({ pointer = '', detail = '' }) => [pointer.replace(/^\/(arguments|answer)/, ''), detail] as const);
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}
