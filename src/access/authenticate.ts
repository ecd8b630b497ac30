import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { DomainError } from '../errors.ts'
import type { HttpEnv } from '../platform/http/env.ts'
import type { KeyCache } from './key-cache.ts'
import { type ApiKey, EVERY_MERCHANT, type Scope } from './keys.ts'
import { createRequestCounter } from './request-counter.ts'
import type { Access } from './types.ts'

/**
 * Reads `Authorization: Bearer <key>`, finds the key and counts the request on it. A revoked or expired key is
 * refused for writes immediately, and for reads within a second.
 * @throws DomainError `unauthenticated`, `rate_limited`
 */
export function authenticate({
  keys,
  merchants: all,
}: {
  keys: KeyCache
  merchants: readonly string[]
}) {
  const counter = createRequestCounter()

  /** Sets the headers of draft-ietf-httpapi-ratelimit-headers-10, for keys that have a limit. */
  function countRequest(c: HttpContext<HttpEnv>, { chainId, ratePerMinute: limit }: ApiKey): void {
    if (limit === null) return
    const { allowed, left, resetS } = counter.count(chainId, limit)
    c.header('ratelimit-policy', `"key";q=${limit};w=60`)
    c.header('ratelimit', `"key";r=${left};t=${resetS}`)
    if (allowed) return
    const detail = `This key allows ${limit} requests per minute`
    throw new DomainError('rate_limited', detail, { retryAfterS: resetS })
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
    countRequest(c, key)
    const merchants = listMerchants(key, all)
    c.set('access', { ...key, merchants, requestId: c.get('requestId') })
    await next()
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
