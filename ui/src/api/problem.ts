import { capitalize } from '@/lib/format';

/** An answer that is an error, as RFC 9457 describes it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly body: Record<string, unknown> = {},
  ) {
    super(detail);
    this.name = 'Problem';
  }

  static async of(response: Response): Promise<Problem> {
    const text = await response.text().catch(() => '');
    try {
      return Problem.from(response.status, JSON.parse(text));
    } catch {
      return new Problem(response.status, 'unknown', text.slice(0, 200) || `the server answered ${response.status}`);
    }
  }

  static from(status: number, body: Record<string, unknown>): Problem {
    const detail = typeof body.detail === 'string' ? body.detail : typeof body.title === 'string' ? body.title : `the server answered ${status}`;
    return new Problem(status, String(body.code ?? 'unknown'), detail, body);
  }
}

/** One sentence for people, whatever was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof Problem) return asSentence(error.message);
  if (error instanceof TypeError) return 'The server cannot be reached.';
  return error instanceof Error ? asSentence(error.message) : 'Something went wrong.';
}

function asSentence(text: string): string {
  const first = capitalize(text);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}
