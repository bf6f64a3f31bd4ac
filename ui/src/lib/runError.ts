/** What the stable codes of model errors mean for people. */
const TEXTS: Record<string, string> = {
  auth: 'The model provider rejected the API key.',
  rate_limit: 'The model provider limits the rate of requests. Try again in a moment.',
  overloaded: 'The model provider is overloaded. Try again in a moment.',
  context_too_long: 'The conversation is too long for the model.',
  content_filter: 'The content filter of the model provider blocked this.',
  transport: 'The model provider cannot be reached.',
  unreachable: 'Nothing answers at the address of the model provider.',
  timeout: 'The model did not answer in time.',
  budget_exhausted: 'A budget is used up.',
  guardrail_violation: 'A guardrail refused this.',
  unknown_price: 'The cost is limited, and the price of the model is not known.',
  malformed_stream: 'The model provider sent an invalid answer.',
};

/** One sentence for the error of a run, if its code has one. The message itself is for those who look for the cause. */
export function runErrorText(code: string): string | undefined {
  return TEXTS[code];
}
