import type { z } from '@hono/zod-openapi'
import { REFUSALS, type RefusalCode } from '../errors.ts'

const text = { type: 'string' } as const

/** A header that is always in a response that declares it. */
const always = (description: string, schema: object = text) => {
  return { description, required: true, schema }
}

export const HEADERS = {
  'X-Request-Id': always(
    'The id that the client sent, or a new one; it is also in problems, the log and the audit log',
  ),
  ETag: always('For `If-None-Match`; weak where counters and times may change without it'),
  Location: always('The path of the new object'),
  Link: {
    description:
      'Of a page as CSV: the path of the next page, with `rel="next"`; none on the last page',
    schema: text,
  },
  'Idempotent-Replayed': {
    description: 'The same request was accepted before: this is its object in its current state',
    schema: { ...text, enum: ['true'] },
  },
  'Retry-After': always('Seconds to wait before the next attempt', { type: 'integer', minimum: 0 }),
  'RateLimit-Policy': {
    description: 'The requests (`q`) that the key may make in so many seconds (`w`)',
    schema: { ...text, example: '"key";q=600;w=60' },
  },
  RateLimit: {
    description: 'The requests left (`r`), and the seconds until all are back (`t`)',
    schema: { ...text, example: '"key";r=599;t=60' },
  },
  'WWW-Authenticate': always('The authentication scheme: `Bearer`'),
  Allow: always('The methods that this path supports'),
}

export type HeaderName = keyof typeof HEADERS

/** Refers to headers, which the document defines once. */
export function referToHeaders(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

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

/** Describes JSON that is written as text, because `c.json` would reformat its numbers. The type omits the schema. */
export const describeTextResponse = (
  description: string,
  schema: z.ZodType,
  ...headers: HeaderName[]
): { description: string } => describeResponse(description, schema, ...headers)

export function describeEventStream(description: string, schema: z.ZodType) {
  const content: object = { 'text/event-stream': { schema } }
  return { description, content }
}

export function describeEmptyResponse(description: string, ...headers: HeaderName[]) {
  return { description, headers: referToHeaders(headers) }
}

const EVERY_ROUTE: readonly RefusalCode[] = ['invalid_address', 'internal_error']

/** Most of these are thrown before the route is reached. */
const MERCHANT_ROUTE: readonly RefusalCode[] = [
  ...EVERY_ROUTE,
  ...(['unauthenticated', 'scope_missing', 'network_not_allowed'] as const),
  ...(['rate_limited', 'invalid_request', 'unavailable'] as const),
]

export const BODY_REFUSALS: readonly RefusalCode[] = [
  'invalid_json',
  'body_too_slow',
  'body_too_large',
  'unsupported_media_type',
]

/** The refusals of a route that calls the gateway while the client waits. */
export const GATEWAY_REFUSALS: readonly RefusalCode[] = [
  'gateway_refused',
  'gateway_failed',
  'gateway_token_refused',
  'gateway_timeout',
]

/** The common refusals of merchant routes and a route's own. The type has no status, because refusals are thrown. */
export function describeRefusals(...own: readonly RefusalCode[]): Record<never, RefusalResponse> {
  return groupByStatus([...MERCHANT_ROUTE, ...own])
}

export const describePublicRefusals = (
  ...own: readonly RefusalCode[]
): Record<never, RefusalResponse> => groupByStatus([...EVERY_ROUTE, ...own])

type RefusalResponse = ReturnType<typeof describeProblem>

const STATUS_HEADERS: Record<number, readonly HeaderName[]> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

function groupByStatus(codes: readonly RefusalCode[]): Record<number, RefusalResponse> {
  const byStatus: Record<number, RefusalResponse> = {}
  for (const { status } of codes.map((code) => REFUSALS[code])) {
    const sharing = codes.filter((code) => REFUSALS[code].status === status)
    byStatus[status] = describeProblem(status, [...new Set(sharing)])
  }
  return byStatus
}

function describeProblem(status: number, codes: readonly RefusalCode[]) {
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Problem' }],
    properties: { status: { const: status }, code: { enum: codes } },
  }
  return {
    description: codes.map((code) => REFUSALS[code].title).join('; '),
    headers: referToHeaders(STATUS_HEADERS[status] ?? []),
    content: { 'application/problem+json': { schema } },
  }
}
