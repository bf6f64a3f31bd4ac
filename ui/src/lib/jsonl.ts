/** JSON Lines: one value per line. */
export function toJsonl(values: unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}
