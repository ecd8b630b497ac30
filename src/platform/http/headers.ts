/** A response header as an OpenAPI header object. */
type Header = {
  description: string
  required?: boolean
  schema: { type: 'string' | 'integer'; minimum?: number; enum?: string[] }
  example: string | number
}

const text = { type: 'string' } as const

/** The response headers that clients may rely on, by name. */
export const HEADERS = {
  'X-Request-Id': {
    description:
      'The id that the client sent, or a new one; it is also in problems, the log and the audit log',
    required: true,
    schema: text,
    example: 'a602ca54-48ed-44d6-9f6e-0dd2a8dff9f9',
  },
  ETag: {
    description: 'For `If-None-Match`; weak, because counters and times may change without it',
    required: true,
    schema: text,
    example: 'W/"7"',
  },
  Location: {
    description: 'The path of the new object',
    required: true,
    schema: text,
    example: '/v1/webhook-endpoints/0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
  },
  Link: {
    description:
      'Of a page as CSV: the path of the next page, with `rel="next"`; none on the last page',
    schema: text,
    example: '</v1/events?after=17&limit=50>; rel="next"',
  },
  'Idempotent-Replayed': {
    description: 'The same request was accepted before: this is its object in its current state',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt',
    required: true,
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
  'RateLimit-Policy': {
    description: 'For keys with a limit: requests (`q`) in a window of seconds (`w`)',
    schema: text,
    example: '"key";q=600;w=60',
  },
  RateLimit: {
    description:
      'For keys with a limit: requests left (`r`), and seconds until the next window (`t`)',
    schema: text,
    example: '"key";r=599;t=60',
  },
  'WWW-Authenticate': {
    description: 'The authentication scheme',
    required: true,
    schema: text,
    example: 'Bearer',
  },
  Allow: {
    description: 'The methods that this path supports',
    required: true,
    schema: text,
    example: 'POST',
  },
} as const satisfies Record<string, Header>

export type HeaderName = keyof typeof HEADERS

/** Refers to headers of a response, for a route's declaration: the document defines each of them once. */
export function referToHeaders(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
