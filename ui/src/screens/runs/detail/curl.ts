/** The command that reads the run from a terminal. A key is never written into it. */
export function curlOf(origin: string, runId: string, needsKey: boolean): string {
  const header = needsKey ? ' -H "Authorization: Bearer $BATON_API_KEY"' : '';
  return `curl${header} ${origin}/api/v1/runs/${runId}`;
}
