import type { RefusalCode } from '../errors.ts'
import { PROBLEMS } from './errors.ts'
import { type HeaderName, referToHeaders } from './headers.ts'

/** What can be answered wherever something is served. */
const ANYWHERE: readonly RefusalCode[] = ['invalid_address', 'internal_error']

/** What is answered before a merchants' route is reached, and by every one of them. */
const MERCHANTS: readonly RefusalCode[] = [
  ...ANYWHERE,
  'unauthenticated',
  'scope_missing',
  'rate_limited',
  'invalid_request',
  'unavailable',
]

/** What is answered to a body, for the declaration of a route that has one. */
export const BODY_REFUSALS: readonly RefusalCode[] = [
  'invalid_json',
  'body_too_slow',
  'body_too_large',
  'unsupported_media_type',
]

/** What can go wrong behind this service, for the declaration of a route that asks the gateway at once. */
export const GATEWAY_REFUSALS: readonly RefusalCode[] = [
  'gateway_refused',
  'gateway_failed',
  'gateway_token_refused',
  'gateway_timeout',
]

/**
 * The refusals of a merchants' route, for its declaration: those that all of them share, and its own.
 * The type tells of none, because refusals are thrown.
 */
export function refuses(...own: readonly RefusalCode[]): Record<never, Refusal> {
  return groupByStatus([...MERCHANTS, ...own])
}

/** The refusals of a route that is open to everybody. */
export function refusesAnyone(...own: readonly RefusalCode[]): Record<never, Refusal> {
  return groupByStatus([...ANYWHERE, ...own])
}

type Reference = { $ref: string }

/** An answer with one of several problems. */
type Refusal = {
  description: string
  headers: Record<string, Reference>
  content: {
    'application/problem+json': {
      schema: Reference | { oneOf: Reference[] }
      examples: Record<string, Reference>
    }
  }
}

function groupByStatus(codes: readonly RefusalCode[]): Record<number, Refusal> {
  const statuses = new Set(codes.map((code) => PROBLEMS[code].status))
  return Object.fromEntries(
    [...statuses].map((status) => {
      const sharing = new Set(codes.filter((code) => PROBLEMS[code].status === status))
      return [status, describe(status, [...sharing])]
    }),
  )
}

function describe(status: number, codes: readonly RefusalCode[]): Refusal {
  const schemas = codes.map((code) => ({ $ref: `#/components/schemas/${nameProblem(code)}` }))
  const [schema] = schemas
  return {
    description: codes.map((code) => PROBLEMS[code].title).join('; '),
    headers: referToHeaders(STATUS_HEADERS[status] ?? []),
    content: {
      'application/problem+json': {
        schema: schema && schemas.length === 1 ? schema : { oneOf: schemas },
        examples: Object.fromEntries(
          codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
        ),
      },
    },
  }
}

const STATUS_HEADERS: Record<number, readonly HeaderName[]> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** The schema of one problem: `transaction_not_found` is `TransactionNotFoundProblem`. */
export function nameProblem(code: string): string {
  const words = code.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return `${words.join('')}Problem`
}
