/** Names and values of a plain object of plain values. Undefined for anything else, which is shown as JSON. */
export function rowsOf(value: unknown): [string, string][] | undefined {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object' || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.some(([, one]) => typeof one === 'object' && one !== null)) return undefined;
  return entries.map(([name, one]) => [name, String(one)]);
}
