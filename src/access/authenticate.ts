import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { routePath } from 'hono/route'
import type { Config } from '../config/config.ts'
import { DomainError } from '../errors.ts'
import { createAddressFinder, nameNetwork } from '../http/client-address.ts'
import type { HttpEnv } from '../http/problems.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { CLI } from '../version.ts'
import { nameOperation, type RefusalContext, recordRefusal } from './audit.ts'
import type { KeyLimits, KeyUses } from './key-use.ts'
import { type ApiKey, EVERY_MERCHANT, type KeyCache, type Scope } from './keys.ts'
import { findForeignUse, findLoss } from './principal.ts'
import type { Access } from './types.ts'

type AuthenticationContext = RefusalContext & {
  config: Pick<Config, 'TRUSTED_PROXIES'>
  access: { keys: KeyCache; uses: KeyUses; limits: KeyLimits; merchants: readonly string[] }
}

/**
 * Finds the key of `Authorization: Bearer <key>` and counts the request. A revoked or expired key is refused at once
 * for writes, within a second for reads, and before the answer for requests that have waited.
 * @throws DomainError `unauthenticated`, `network_not_allowed`, `rate_limited`
 */
export function authenticate(ctx: AuthenticationContext) {
  const { keys, uses, limits, merchants } = ctx.access
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)
  const throttle = createThrottle(60_000)

  return createMiddleware<HttpEnv>(async (c, next) => {
    const text = readBearer(c)
    if (text === undefined) {
      throw new DomainError('unauthenticated', 'Send `Authorization: Bearer <API key>`')
    }
    const freshness = c.req.method === 'GET' ? 'cached' : 'current'
    const key = await keys.find(text, freshness)
    if (!key) throw new DomainError('unauthenticated', 'The API key is unknown, revoked or expired')
    const address = findAddress(c.env.incoming)
    const foreign = findForeignUse(key, address)
    if (foreign) {
      const network = nameNetwork(address)
      // At most once a minute per network, or whoever holds a stolen key could fill the log.
      if (throttle(`${key.id} ${network}`)) await recordForeignUse(ctx, c, key, network)
      throw foreign
    }
    const admission = limits.admit(key, isWaiting(c))
    for (const [name, value] of Object.entries(admission.headers)) c.header(name, value)
    if (admission.refusal) throw admission.refusal
    try {
      uses.note(key.id, address)
      const access = {
        ...{ ...key, ...listAccounts(key, merchants), address },
        requestId: c.get('requestId'),
        required: new Set<Scope>(),
      }
      c.set('access', access)
      await next()
      if (!isWaiting(c)) return
      const loss = findLoss(access, await keys.find(text, 'current'))
      if (loss) throw loss
    } finally {
      admission.leave()
    }
  })
}

async function recordForeignUse(
  ctx: AuthenticationContext,
  c: HttpContext<HttpEnv>,
  { id, name }: ApiKey,
  network: string,
): Promise<void> {
  const requestId = c.get('requestId')
  const operation = nameOperation(c)
  ctx.log.warn(
    { keyId: id, network, operation, requestId },
    `an API key was refused outside its networks; if it was stolen, revoke it with: ${CLI} keys revoke <keyId>`,
  )
  const write = { operation, merchantCode: null, objectId: id }
  await recordRefusal(ctx, { id, name, requestId }, write, 'network_not_allowed')
}

export const parseBearer = (header = '') => /^Bearer +([\x21-\x7e]{1,256})$/i.exec(header)?.[1]

export const readBearer = (c: HttpContext) => parseBearer(c.req.header('authorization'))

const LONG_POLLS = ['/v1/transactions/:transactionId', '/v1/refunds/:refundId', '/v1/events']

/** Long polls last up to a minute, streams for hours; both hold only memory. */
function isWaiting(c: HttpContext): boolean {
  const route = routePath(c, -1)
  if (route === '/v1/events/stream') return true
  return LONG_POLLS.includes(route) && Number(c.req.query('wait')) > 0
}

export function listAccounts({ merchants }: Pick<ApiKey, 'merchants'>, all: readonly string[]) {
  const coversAll = merchants.includes(EVERY_MERCHANT)
  return { merchants: coversAll ? all : merchants, coversAll }
}

/** Makes a route require a scope, and declares that in the OpenAPI document. */
export function withScope(scope: Scope) {
  const middleware = createMiddleware<HttpEnv>(async (c, next) => {
    const { scopes, required } = c.get('access')
    if (!scopes.includes(scope)) {
      throw new DomainError('scope_missing', `This key lacks the scope ${scope}`)
    }
    required.add(scope)
    await next()
  })
  return { middleware, security: [{ ApiKey: [scope] }] }
}

/** Returns the accounts of a key, or only the named one of them. */
export function narrowMerchants(
  { merchants }: Pick<Access, 'merchants'>,
  named: string | undefined,
) {
  return merchants.filter((code) => named === undefined || code === named)
}
