import { randomUUID } from 'node:crypto'
import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import { REGISTRATION_LOCK } from '../db/names.ts'
import { DomainError } from '../errors.ts'
import type { EventType } from '../events/event.ts'
import { filterByScope } from '../feed/read-feed.ts'
import { AddressError, formatOrigin } from '../platform/outbound/addresses.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { WebhooksContext } from './context.ts'
import { generateSecret, placeSecret } from './secrets.ts'

const OPERATION = 'POST /v1/webhook-endpoints'

/** Endpoints per merchant code: each costs one call per event. */
const MAX_ENDPOINTS = 20

export type Registered = { id: string; url: string; types: string[]; secret: string }

/**
 * Registers an endpoint for the account's events from now on, with a secret of 32 random bytes that is returned
 * only here. It belongs to the key, with all keys it is rotated to, or to the person, and ends with them.
 * @param merchantCode the account; `*` for the events of every account
 * @throws DomainError `invalid_request` on `url` when its address is not allowed, `scope_missing` for
 *   types that the key may not read, `too_many_webhook_endpoints`
 */
export async function registerEndpoint(
  ctx: WebhooksContext,
  access: Access,
  merchantCode: string,
  { url, types: requested }: { url: string; types?: EventType[] | undefined },
): Promise<Registered> {
  const { types, withRefunds } = filterByScope(access, {
    types: requested && [...new Set(requested)],
  })
  await requireUrl(ctx, url)
  const id = randomUUID()
  const secret = generateSecret()
  await runInTransaction(ctx.sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${REGISTRATION_LOCK})`
    // If every event was deleted at the end of its retention, the feed ends where the deletion stopped.
    const added = await tx`
      insert into webhook_endpoints (id, merchant_code, key_chain_id, url, types, with_refunds, secret, planned_up_to)
      select ${id}, ${merchantCode}, ${access.chainId}, ${url}, ${[...types]}, ${withRefunds}, ${ctx.encryption.encrypt(secret, placeSecret(id))},
        greatest(0, (select max(id) from events), (select removed_up_to from event_removals))
      where (select count(*) from webhook_endpoints where merchant_code = ${merchantCode})
        < ${MAX_ENDPOINTS}`
    if (added.count === 0) {
      throw new DomainError(
        'too_many_webhook_endpoints',
        `There are already ${MAX_ENDPOINTS} endpoints: delete one that is no longer needed`,
      )
    }
    await recordWrite(tx, ctx.log, access, { operation: OPERATION, merchantCode, objectId: id })
  })
  const { name: key, requestId } = access
  const to = formatOrigin(url)
  ctx.log.info({ merchantCode, endpointId: id, to, key, requestId }, 'webhook endpoint registered')
  return { id, url, types: [...types], secret }
}

/** @throws DomainError `invalid_request` on `url` when its address is not allowed */
export async function requireUrl(
  { webhooks }: Pick<WebhooksContext, 'webhooks'>,
  url: string,
): Promise<void> {
  try {
    await webhooks.check(url)
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    const { message } = error
    const errors = [{ path: 'url', message }]
    throw new DomainError('invalid_request', `url: ${message}`, { errors })
  }
}
