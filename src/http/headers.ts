/** A response header as the API's document has it. */
type Header = {
  description: string
  required?: boolean
  schema: { type: 'string' | 'integer'; minimum?: number; enum?: string[] }
  example: string | number
}

const text = { type: 'string' } as const

/** The response headers that callers may rely on, by name. */
export const HEADERS = {
  'X-Request-Id': {
    description: 'The id that was sent, or a new one; it stands in problems, the log and the audit',
    required: true,
    schema: text,
    example: 'a602ca54-48ed-44d6-9f6e-0dd2a8dff9f9',
  },
  ETag: {
    description: 'For `If-None-Match`; weak, because counters and times may differ under it',
    required: true,
    schema: text,
    example: 'W/"7"',
  },
  Location: {
    description: 'Where the new object is read',
    required: true,
    schema: text,
    example: '/v1/refunds/0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
  },
  'Idempotent-Replayed': {
    description: 'The same request was taken in before: this is its object as it is now',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  'Retry-After': {
    description: 'Seconds after which to ask again',
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
    description: 'How to say who asks',
    required: true,
    schema: text,
    example: 'Bearer',
  },
  Allow: {
    description: 'The methods that are served here',
    required: true,
    schema: text,
    example: 'POST',
  },
} as const satisfies Record<string, Header>

export type HeaderName = keyof typeof HEADERS

/** Headers of an answer, for a route's declaration: the document has each of them once. */
export function referToHeaders(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
