import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { DomainError } from '../errors.ts'
import type { HttpEnv } from '../http/problems.ts'
import { toSeconds } from '../platform/concurrency/rate-limiter.ts'
import type { Release } from '../platform/concurrency/slots.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { createNetworkCheck } from './check-network.ts'
import type { KeyCache } from './key-cache.ts'
import { describeAllowance, findRate, type KeyLimits } from './key-limits.ts'
import type { KeyUses } from './key-uses.ts'
import { type ApiKey, EVERY_MERCHANT, type Scope } from './keys.ts'
import type { Access } from './types.ts'

/** Its requests last for hours, and hold nothing but memory. */
const STREAM_PATH = '/v1/events/stream'

/**
 * Reads `Authorization: Bearer <key>`, finds the key and counts the request on it. A revoked or expired key is
 * refused for writes immediately, and for reads within a second.
 * @throws DomainError `unauthenticated`, `network_not_allowed`, `rate_limited`
 */
export function authenticate(ctx: {
  sql: Sql
  log: Log
  keys: KeyCache
  keyUses: KeyUses
  keyLimits: KeyLimits
  merchants: readonly string[]
}) {
  const { keys, keyUses, keyLimits: limits } = ctx
  const checkNetwork = createNetworkCheck(ctx)

  /** @throws DomainError `rate_limited` */
  function admit(c: HttpContext<HttpEnv>, key: ApiKey): Release {
    const isWaiting = c.req.query('wait') !== undefined || c.req.path === STREAM_PATH
    const admission = limits.admit(key, isWaiting)
    const { kind, allowance } = admission
    const headers = describeAllowance(key, allowance)
    for (const [name, value] of Object.entries(headers)) c.header(name, value)
    if (kind === 'admitted') return admission.leave
    const [detail, retryAfterS] =
      kind === 'too_many'
        ? [`This key allows ${findRate(key)} requests per minute`, toSeconds(allowance.waitMs)]
        : [`This key allows ${admission.most} requests at once`, 1]
    throw new DomainError('rate_limited', detail, { retryAfterS })
  }

  return createMiddleware<HttpEnv>(async (c, next) => {
    const text = readBearer(c)
    const freshness = c.req.method === 'GET' ? 'cached' : 'current'
    const key = text === undefined ? undefined : await keys.find(text, freshness)
    if (!key) {
      const detail =
        text === undefined
          ? 'Send `Authorization: Bearer <API key>`'
          : 'The API key is unknown, revoked or expired'
      throw new DomainError('unauthenticated', detail)
    }
    const { incoming } = c.env
    await checkNetwork(c, key, keyUses.findAddress(incoming))
    const leave = admit(c, key)
    try {
      keyUses.note(key.id, incoming)
      const merchants = listMerchants(key, ctx.merchants)
      c.set('access', { ...key, merchants, requestId: c.get('requestId') })
      await next()
    } finally {
      leave()
    }
  })
}

/** Returns the API key that a request was sent with, if it has the form of one. */
export function readBearer(c: HttpContext): string | undefined {
  return parseBearer(c.req.header('authorization'))
}

/** Returns the API key in an `Authorization` header, if it has the form of one. */
export function parseBearer(header = ''): string | undefined {
  return /^Bearer +([\x21-\x7e]{1,256})$/i.exec(header)?.[1]
}

/** Returns the accounts that a key covers. */
export function listMerchants({ merchantCode }: ApiKey, all: readonly string[]): readonly string[] {
  return merchantCode === EVERY_MERCHANT ? all : [merchantCode]
}

/** Makes a route require a scope and declare it in the OpenAPI document. */
export function withScope(scope: Scope) {
  return { middleware: requireScope(scope), security: [{ ApiKey: [scope] }] }
}

/** @throws DomainError `scope_missing` */
function requireScope(scope: Scope) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    if (!c.get('access').scopes.includes(scope)) {
      throw new DomainError('scope_missing', `This key lacks the scope ${scope}`)
    }
    await next()
  })
}

/**
 * Returns the accounts that a request may access: the key's, or the one of them that the request names.
 * @returns an empty list when the key does not cover the named account, so that nothing is found
 */
export function narrowMerchants(
  access: Access,
  merchantCode: string | undefined,
): readonly string[] {
  if (merchantCode === undefined) return access.merchants
  return access.merchants.filter((code) => code === merchantCode)
}
