const NO_ANSWER = 'no answer'

/**
 * Returns what merchants may know of a failed call: what the endpoint answered over HTTP, or what is wrong with its URL.
 * How a connection failed is in the log alone: it shows which ports of a network are open, and what listens there.
 */
export function describeFailure(error: string | null): string | null {
  if (error === null || error.startsWith('answered ') || error.startsWith('the url ')) return error
  return NO_ANSWER
}
