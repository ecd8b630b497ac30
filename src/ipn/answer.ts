import type { ContentfulStatusCode } from 'hono/utils/http-status'

/** Every outcome of a notification request, as a metric label; only `stored` is acknowledged. */
export const VERDICTS = [
  'stored',
  'malformed',
  'bad_signature',
  'recut',
  'unknown_merchant',
  'method',
  'address',
  'content_type',
  'too_large',
  'too_slow',
  'throttled',
  'overloaded',
  'store_failed',
] as const

/** The response to a notification request. */
export type IpnAnswer = {
  status: ContentfulStatusCode
  verdict: (typeof VERDICTS)[number]
  /** The reason for a refusal: sent as `respmsg`, and logged. */
  why?: string
  headers?: Record<string, string>
}

/** The database is behind: the notification itself is valid and will be accepted a moment later. */
export const OVERLOADED = {
  status: 503,
  verdict: 'overloaded',
  why: 'not stored, send it again',
  headers: { 'retry-after': '1' },
} satisfies IpnAnswer
