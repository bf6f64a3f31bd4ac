type Cell = string | number | boolean | undefined;

/** What begins a formula: at the start of a text, and after what separates cells where a comma does not, such as `;` in German. */
const FORMULA = /(^|[;\t\r\n])( {0,9})(?=[=+\-@＝＋－＠])/g;

/** A spreadsheet's text file (RFC 4180). Texts that a spreadsheet would run as a formula get an apostrophe in front. */
export function csv(header: string[], rows: Cell[][]): string {
  return [header, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

function cell(value: Cell): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const safe = value.replace(FORMULA, "$1$2'").replace(/^[\t\r\n]/, "'$&");
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
