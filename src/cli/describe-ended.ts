import type { EndedEndpoint } from '../webhooks/end-endpoints.ts'

/** Describes the webhook endpoints that end with a key, one in each line; nothing when there are none. */
export function describeEnded(endpoints: readonly EndedEndpoint[]): string {
  if (endpoints.length === 0) return ''
  const lines = endpoints.map(({ id, host }) => `  ${id}  ${host}\n`)
  return `These webhook endpoints belong to it, and are disabled:\n${lines.join('')}`
}
