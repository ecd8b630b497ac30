import type { z } from '@hono/zod-openapi'
import { REFUSALS, type RefusalCode } from '../errors.ts'

const text = { type: 'string' } as const

/** A header that a response always has, where it is declared. */
const always = (description: string, schema: object = text) => {
  return { description, required: true, schema }
}

/** The response headers that clients may rely on, by name. */
export const HEADERS = {
  'X-Request-Id': always(
    'The id that the client sent, or a new one; it is also in problems, the log and the audit log',
  ),
  ETag: always('For `If-None-Match`; weak, because counters and times may change without it'),
  Location: always('The path of the new object'),
  Link: {
    description:
      'Of a page as CSV: the path of the next page, with `rel="next"`; none on the last page',
    schema: text,
  },
  'Idempotent-Replayed': {
    description: 'The same request was accepted before: this is its object in its current state',
    schema: { type: 'string', enum: ['true'] },
  },
  'Retry-After': always('Seconds to wait before the next attempt', {
    type: 'integer',
    minimum: 0,
  }),
  'RateLimit-Policy': {
    description: 'The requests (`q`) that the key may make in so many seconds (`w`)',
    schema: { type: 'string', example: '"key";q=600;w=60' },
  },
  RateLimit: {
    description: 'The requests left (`r`), and the seconds until all are back (`t`)',
    schema: { type: 'string', example: '"key";r=599;t=60' },
  },
  'WWW-Authenticate': always('The authentication scheme: `Bearer`'),
  Allow: always('The methods that this path supports'),
}

export type HeaderName = keyof typeof HEADERS

/** Refers to headers of a response, for a route's declaration: the document defines each of them once. */
export function referToHeaders(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** Describes a JSON response with its own headers, for a route's declaration. */
export function describeResponse<T extends z.ZodType>(
  description: string,
  schema: T,
  ...headers: HeaderName[]
) {
  return {
    description,
    headers: referToHeaders(headers),
    content: { 'application/json': { schema } },
  }
}

/**
 * Describes a JSON response that is written as text, because `c.json` would reformat its numbers. The
 * returned type leaves the schema out.
 */
export const describeTextResponse = (
  description: string,
  schema: z.ZodType,
): { description: string } => describeResponse(description, schema)

/** Describes server-sent events whose data is JSON, for a route's declaration. */
export function describeEventStream(description: string, schema: z.ZodType) {
  const content: object = { 'text/event-stream': { schema } }
  return { description, content }
}

/** Describes a response without a body, for a route's declaration. */
export function describeEmptyResponse(description: string, ...headers: HeaderName[]) {
  return { description, headers: referToHeaders(headers) }
}

/** Possible on every route. */
const COMMON: readonly RefusalCode[] = ['invalid_address', 'internal_error']

/** Possible on every merchants' route, most of them before the route is reached. */
const MERCHANT_ROUTE: readonly RefusalCode[] = [
  ...COMMON,
  ...(['unauthenticated', 'scope_missing', 'network_not_allowed'] as const),
  ...(['rate_limited', 'invalid_request', 'unavailable'] as const),
]

/** The refusals of a body, for the declaration of a route that has one. */
export const BODY_REFUSALS: readonly RefusalCode[] = [
  'invalid_json',
  'body_too_slow',
  'body_too_large',
  'unsupported_media_type',
]

/** The failures behind this service, for the declaration of a route that calls the gateway at once. */
export const GATEWAY_REFUSALS: readonly RefusalCode[] = [
  'gateway_refused',
  'gateway_failed',
  'gateway_token_refused',
  'gateway_timeout',
]

/**
 * Describes the refusals of a merchants' route, for its declaration: those that all of them share, and its
 * own. The type holds no status, because refusals are thrown.
 */
export function describeRefusals(...own: readonly RefusalCode[]): Record<never, RefusalResponse> {
  return groupByStatus([...MERCHANT_ROUTE, ...own])
}

/** Describes the refusals of a route that needs no key. */
export const describePublicRefusals = (
  ...own: readonly RefusalCode[]
): Record<never, RefusalResponse> => groupByStatus([...COMMON, ...own])

/** A response with one of several problems. */
type RefusalResponse = {
  description: string
  headers: Record<string, { $ref: string }>
  content: { 'application/problem+json': { schema: object } }
}

const STATUS_HEADERS: Record<number, readonly HeaderName[]> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** Describes a response for each status, with the codes that share it. */
function groupByStatus(codes: readonly RefusalCode[]): Record<number, RefusalResponse> {
  const statuses = new Set(codes.map((code) => REFUSALS[code].status))
  return Object.fromEntries(
    Array.from(statuses, (status) => {
      const sharing = [...new Set(codes)].filter((code) => REFUSALS[code].status === status)
      const schema = {
        allOf: [{ $ref: '#/components/schemas/Problem' }],
        properties: { status: { const: status }, code: { enum: sharing } },
      }
      const response = {
        description: sharing.map((code) => REFUSALS[code].title).join('; '),
        headers: referToHeaders(STATUS_HEADERS[status] ?? []),
        content: { 'application/problem+json': { schema } },
      }
      return [status, response]
    }),
  )
}
