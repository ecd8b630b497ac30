import { randomBytes, randomUUID } from 'node:crypto'
import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { runInTransaction } from '../db/transaction.ts'
import { DomainError } from '../errors.ts'
import type { EventType } from '../events/event.ts'
import { chooseEvents } from '../feed/choose.ts'
import { AddressError } from './addresses.ts'
import { showOrigin } from './url.ts'

const REGISTERING = 'POST /v1/webhook-endpoints'

/** Each costs a call for every event. */
const MAX_ENDPOINTS = 20

/** Serialises registrations, so that two at once do not both find the last place free. */
export const REGISTRATION_LOCK = 7_620_115_003

/** Bound to the sealed secret: it opens in its own row only. */
export function sealedFor(endpointId: string): string {
  return `webhook endpoint ${endpointId}`
}

export type Registered = { id: string; url: string; types: string[]; secret: string }

/**
 * Registers a receiver of the account's events from now on, with a secret of 32 random bytes that is shown
 * this once.
 * @param merchantCode whose events; `*` for those of every account
 * @throws DomainError `invalid_request` on `url` when nothing may be sent there, `scope_missing` for
 *   events of refunds that the key may not read, `too_many_webhook_endpoints`
 */
export async function registerEndpoint(
  ctx: Context,
  access: Access,
  merchantCode: string,
  { url, types: wanted }: { url: string; types?: EventType[] | undefined },
): Promise<Registered> {
  const types = chooseTypes(access, wanted)
  await requireUrl(ctx, url)
  const id = randomUUID()
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  await runInTransaction(ctx.sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${REGISTRATION_LOCK})`
    // In a database whose feed was emptied for its age, the end is where the removal came to.
    const added = await tx`
      insert into webhook_endpoints (id, merchant_code, url, types, secret, planned_up_to)
      select ${id}, ${merchantCode}, ${url}, ${types}, ${ctx.sealer.seal(secret, sealedFor(id))},
        greatest(0, (select max(id) from events), (select removed_up_to from event_removals))
      where (select count(*) from webhook_endpoints where merchant_code = ${merchantCode})
        < ${MAX_ENDPOINTS}`
    if (added.count === 0) {
      throw new DomainError(
        'too_many_webhook_endpoints',
        `There are ${MAX_ENDPOINTS} already: delete one that is not needed`,
      )
    }
    await recordWrite(tx, access, { operation: REGISTERING, merchantCode, objectId: id })
  })
  const { name: key, requestId } = access
  const to = showOrigin(url)
  ctx.log.info({ merchantCode, endpointId: id, to, key, requestId }, 'webhook endpoint registered')
  return { id, url, types, secret }
}

/** All that the key may have sent, or what was named. Registering takes the place of reading payments. */
function chooseTypes(access: Access, named: readonly EventType[] | undefined): string[] {
  const scopes = [...access.scopes, 'payments:read']
  const { types } = chooseEvents({ ...access, scopes }, { types: named })
  return [...new Set(types)]
}

async function requireUrl(ctx: Context, url: string): Promise<void> {
  try {
    await ctx.webhooks.check(url)
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    const { message } = error
    const errors = [{ path: 'url', message }]
    throw new DomainError('invalid_request', `url: ${message}`, { errors })
  }
}
