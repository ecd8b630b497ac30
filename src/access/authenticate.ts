import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { AppEnv } from '../http/app-env.ts'
import { createRequestCounter } from './count-requests.ts'
import { type ApiKey, EVERY_MERCHANT, type Scope } from './keys.ts'

/** Who asks, and whose rows it may touch. */
export type Access = ApiKey & {
  /** The accounts the key holds; every statement on merchants' data is limited to them. */
  merchants: readonly string[]
  /** Of the request it came with: the audit names it. */
  requestId: string
}

/**
 * Reads `Authorization: Bearer <key>`, finds the key and counts the request on it. A key that was revoked
 * or has expired writes nothing from that moment on; for a second more it may read.
 * @throws DomainError `unauthenticated`, `rate_limited`
 */
export function authenticate(ctx: Context) {
  const counter = createRequestCounter()

  /** The fields of draft-ietf-httpapi-ratelimit-headers-10, for keys that have a limit. */
  function countRequest(c: HttpContext<AppEnv>, { chainId, ratePerMinute: limit }: ApiKey): void {
    if (limit === null) return
    const { allowed, left, resetS } = counter.count(chainId, limit)
    c.header('ratelimit-policy', `"key";q=${limit};w=60`)
    c.header('ratelimit', `"key";r=${left};t=${resetS}`)
    if (allowed) return
    const detail = `This key may ask ${limit} times a minute`
    throw new DomainError('rate_limited', detail, { retryAfterS: resetS })
  }

  return createMiddleware<AppEnv>(async (c, next) => {
    const text = readBearer(c)
    const asOf = c.req.method === 'GET' ? 'lately' : 'now'
    const key = text === undefined ? undefined : await ctx.keys.find(text, asOf)
    if (!key) {
      const sent = text !== undefined
      throw new DomainError(
        'unauthenticated',
        sent
          ? 'This API key is not known, was revoked or has expired'
          : 'Send `Authorization: Bearer <API key>`',
      )
    }
    countRequest(c, key)
    const merchants = key.merchantCode === EVERY_MERCHANT ? ctx.merchants : [key.merchantCode]
    c.set('access', { ...key, merchants, requestId: c.get('requestId') })
    await next()
  })
}

/** The key a request was sent with, if it was sent with anything that could be one. */
export function readBearer(c: HttpContext<AppEnv>): string | undefined {
  return /^Bearer +([\x21-\x7e]{1,256})$/i.exec(c.req.header('authorization') ?? '')?.[1]
}

/** For the declaration of a route: it asks for the scope, and the API's document says so. */
export function withScope(scope: Scope) {
  return { middleware: requireScope(scope), security: [{ ApiKey: [scope] }] }
}

/** @throws DomainError `scope_missing` */
function requireScope(scope: Scope) {
  return createMiddleware<AppEnv>(async (c, next) => {
    if (!c.get('access').scopes.includes(scope)) {
      throw new DomainError('scope_missing', `This key has no scope ${scope}`)
    }
    await next()
  })
}

/**
 * The accounts a request may see: the key's, or the one of them that it names.
 * @returns none when the named account is not the key's: nothing will be found
 */
export function narrowMerchants(
  access: Access,
  merchantCode: string | undefined,
): readonly string[] {
  if (merchantCode === undefined) return access.merchants
  return access.merchants.filter((one) => one === merchantCode)
}
