import { REFUSALS, type RefusalCode } from '../../errors.ts'
import { type HeaderName, referToHeaders } from './headers.ts'

/** Possible on every route. */
const COMMON: readonly RefusalCode[] = ['invalid_address', 'internal_error']

/** Possible on every merchants' route, most of them before the route is reached. */
const MERCHANT_ROUTE: readonly RefusalCode[] = [
  ...COMMON,
  'unauthenticated',
  'scope_missing',
  'network_not_allowed',
  'rate_limited',
  'invalid_request',
  'unavailable',
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
export function describePublicRefusals(
  ...own: readonly RefusalCode[]
): Record<never, RefusalResponse> {
  return groupByStatus([...COMMON, ...own])
}

type Reference = { $ref: string }

/** A response with one of several problems. */
type RefusalResponse = {
  description: string
  headers: Record<string, Reference>
  content: {
    'application/problem+json': {
      schema: Reference | { oneOf: Reference[] }
      examples: Record<string, Reference>
    }
  }
}

function groupByStatus(codes: readonly RefusalCode[]): Record<number, RefusalResponse> {
  const statuses = new Set(codes.map((code) => REFUSALS[code].status))
  return Object.fromEntries(
    [...statuses].map((status) => {
      const sharing = new Set(codes.filter((code) => REFUSALS[code].status === status))
      return [status, describeStatus(status, [...sharing])]
    }),
  )
}

function describeStatus(status: number, codes: readonly RefusalCode[]): RefusalResponse {
  const schemas = codes.map((code) => ({ $ref: `#/components/schemas/${nameProblem(code)}` }))
  const [schema] = schemas
  return {
    description: codes.map((code) => REFUSALS[code].title).join('; '),
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

/** Names the schema of one problem: `transaction_not_found` is `TransactionNotFoundProblem`. */
export function nameProblem(code: string): string {
  const words = code.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return `${words.join('')}Problem`
}
