import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { DomainError } from '../errors.ts'
import type { HttpEnv } from '../http/problems.ts'
import { toSeconds } from '../platform/concurrency/rate-limiter.ts'
import type { Release } from '../platform/concurrency/slots.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { createNetworkCheck } from './check-network.ts'
import { describeAllowance, findRate, type KeyLimits } from './key-limits.ts'
import type { KeyUses } from './key-uses.ts'
import { type ApiKey, EVERY_MERCHANT, type KeyCache, type Scope } from './keys.ts'
import { findLoss } from './principal.ts'
import type { Access } from './types.ts'

/** Its requests last for hours, and hold nothing but memory. */
const STREAM_PATH = '/v1/events/stream'

/**
 * Reads `Authorization: Bearer <key>`, finds the key and counts the request on it. A revoked or expired key is
 * refused for writes immediately, for reads within a second, and for what has waited before it is answered.
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
    const admission = limits.admit(key, isWaiting(c))
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
    if (text === undefined || !key) {
      const detail =
        text === undefined
          ? 'Send `Authorization: Bearer <API key>`'
          : 'The API key is unknown, revoked or expired'
      throw new DomainError('unauthenticated', detail)
    }
    const { incoming } = c.env
    const address = keyUses.findAddress(incoming)
    await checkNetwork(c, key, address)
    const leave = admit(c, key)
    try {
      keyUses.note(key.id, incoming)
      const requestId = c.get('requestId')
      const access = {
        ...key,
        ...listAccounts(key, ctx.merchants),
        requestId,
        address,
        required: new Set<Scope>(),
      }
      c.set('access', access)
      await next()
      if (!isWaiting(c)) return
      const loss = findLoss(access, await keys.find(text, 'current'))
      if (loss) throw loss
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

/** Its requests last for up to a minute, or for hours. */
function isWaiting(c: HttpContext): boolean {
  return c.req.query('wait') !== undefined || c.req.path === STREAM_PATH
}

/** Returns the accounts that a key or a person covers. */
export function listAccounts(
  { merchants }: Pick<ApiKey, 'merchants'>,
  all: readonly string[],
): Pick<Access, 'merchants' | 'coversAll'> {
  const coversAll = merchants.includes(EVERY_MERCHANT)
  return { merchants: coversAll ? all : merchants, coversAll }
}

/** Makes a route require a scope and declare it in the OpenAPI document. */
export function withScope(scope: Scope) {
  return { middleware: requireScope(scope), security: [{ ApiKey: [scope] }] }
}

/** @throws DomainError `scope_missing` */
function requireScope(scope: Scope) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    const { scopes, required } = c.get('access')
    if (!scopes.includes(scope)) {
      throw new DomainError('scope_missing', `This key lacks the scope ${scope}`)
    }
    required.add(scope)
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
