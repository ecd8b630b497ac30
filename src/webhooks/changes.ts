import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { recordWrite } from '../access/audit.ts'
import { lockActor } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED, REGISTRATION_LOCK } from '../db/names.ts'
import { DomainError, invalidField } from '../errors.ts'
import { type EventType, getApiVersion } from '../events/event.ts'
import { filterByScope } from '../feed/read-feed.ts'
import { AddressError, formatOrigin } from '../platform/outbound/addresses.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import {
  type EndpointRequest,
  readEndpoint,
  recordCondition,
  requireReadable,
  type StoredEndpoint,
} from './endpoints.ts'
import type { RegisteredEndpoint, RotatedSecret, SecretRotation } from './schemas.ts'
import { generateSecret, openSecrets, placeSecret, type WebhooksContext } from './send.ts'

export const ENDPOINTS_PATH = '/v1/webhook-endpoints'
export const ENDPOINT_PATH = `${ENDPOINTS_PATH}/{endpointId}`

export type ChangeContext = Pick<Context, 'db' | 'log'>

/**
 * Locks the endpoint, changes it and writes the audit record, in one commit. The lock comes first, and takes the lease
 * away: what is being sent is not recorded, and is sent again after the change, once those calls have ended.
 * @returns the result of the change
 * @throws DomainError `webhook_endpoint_not_found`; `scope_missing` when the key may not read what the endpoint gets;
 *   whatever the change throws
 */
export async function changeEndpoint<T>(
  ctx: ChangeContext,
  request: EndpointRequest,
  operation: string,
  change: (tx: Tx, before: StoredEndpoint) => Promise<T>,
  { mayBeUnreadable = false } = {},
): Promise<T> {
  const { access, id } = request
  const result = await runInTransaction(ctx.db.sql, async (tx) => {
    // Before the endpoint, as whoever ends a key does.
    await lockActor(tx, access)
    const before = await readEndpoint(tx, request, 'for update of e')
    if (!mayBeUnreadable) requireReadable(access, before)
    const { merchantCode } = before
    await tx`
      update webhook_endpoints as e set lease_id = null,
        due_at = case when e.lease_owner is null then clock.at else e.due_at end
      from ${tx.unsafe(CLOCK)} where id = ${id}`
    const changed = await change(tx, before)
    await recordWrite(tx, ctx.log, access, { operation, merchantCode, objectId: id })
    notifyAfterCommit(tx, EVENTS_PUBLISHED)
    return changed
  })
  const { name: key, requestId } = access
  ctx.log.info({ endpointId: id, operation, key, requestId }, 'webhook endpoint changed')
  return result
}

/** Endpoints per merchant code: each costs one call per event. */
const MAX_ENDPOINTS = 20

/**
 * Registers an endpoint for the account's events from now on (`*`: of every account), with a secret that is returned
 * only here.
 * @throws DomainError `invalid_request` on `url`, `scope_missing` for types that the key may not read,
 *   `too_many_webhook_endpoints`
 */
export async function registerEndpoint(
  ctx: WebhooksContext,
  access: Access,
  merchantCode: string,
  { url, types: requested }: { url: string; types?: EventType[] | undefined },
): Promise<z.infer<typeof RegisteredEndpoint>> {
  const { types } = filterByScope(access, { types: requested && [...new Set(requested)] })
  await requireUrl(ctx, url)
  const id = randomUUID()
  const secret = generateSecret()
  await runInTransaction(ctx.db.sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${tx.unsafe(REGISTRATION_LOCK)})`
    // If every event was deleted at the end of its retention, the feed ends where the deletion stopped.
    const added = await tx`
      with feed as materialized (
        select greatest(0, (select max(id) from events), (select removed_up_to from event_removals)) as "end"
        where (select count(*) from webhook_endpoints where merchant_code = ${merchantCode})
          < ${MAX_ENDPOINTS})
      insert into webhook_endpoints (id, merchant_code, key_chain_id, url, types, api_version, secret, cursor)
      select ${id}, ${merchantCode}, ${access.chainId}, ${url}, ${[...types]}, ${getApiVersion()}, ${ctx.encryption.encrypt(secret, placeSecret(id))},
        feed."end"
      from feed`
    if (added.count === 0) {
      throw new DomainError(
        'too_many_webhook_endpoints',
        `There are already ${MAX_ENDPOINTS} endpoints: delete one that is no longer needed`,
      )
    }
    const operation = `POST ${ENDPOINTS_PATH}`
    await recordWrite(tx, ctx.log, access, { operation, merchantCode, objectId: id })
  })
  const { name: key, requestId } = access
  const to = formatOrigin(url)
  ctx.log.info({ merchantCode, endpointId: id, to, key, requestId }, 'webhook endpoint registered')
  return { id, url, types: [...types], secret }
}

async function requireUrl(
  { webhooks }: Pick<WebhooksContext, 'webhooks'>,
  url: string,
): Promise<void> {
  try {
    await webhooks.check(url)
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    throw invalidField('url', error.message)
  }
}

type Change = { url?: string | undefined; types?: EventType[] | undefined }

/**
 * Changes an endpoint's address, its types or both. Other types apply to what was not sent yet; at another address what
 * waits is due at once. A disabled endpoint stays disabled.
 *
 * The caller has to be able to read everything that the endpoint gets, before and after: its key could lead refund
 * events to an address of its own. Whoever changes it owns it: the end of a stolen key ends what was led elsewhere with
 * it.
 * @throws DomainError as `changeEndpoint` does, and `invalid_request` on `url`
 */
export async function updateEndpoint(
  ctx: WebhooksContext,
  request: EndpointRequest,
  { url, types }: Change,
): Promise<void> {
  const { access, id } = request
  // The name is resolved before the transaction: nothing calls the network while one is open.
  if (url !== undefined) await requireUrl(ctx, url)
  await changeEndpoint(ctx, request, `PATCH ${ENDPOINT_PATH}`, async (tx, before) => {
    const next = types && filterByScope(access, { types: [...new Set(types)] })
    const isMoved = url !== undefined && url !== before.url
    // The same address again is no change.
    if (!next && !isMoved) return
    await tx`
      update webhook_endpoints set types = ${[...(next ?? before).types]}, url = ${url ?? before.url},
        key_chain_id = ${access.chainId} where id = ${id}`
    if (isMoved) await forgetFailures(tx, id, before.isFailing && !before.isDisabled)
  })
  if (url === undefined) return
  ctx.log.info({ endpointId: id, to: formatOrigin(url) }, 'webhook endpoint has another address')
}

/** Enables an endpoint: it continues where it stopped, in order. If its key has ended, it belongs to the caller from now on. */
export async function enableEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  const { access, id } = request
  await changeEndpoint(ctx, request, `POST ${ENDPOINT_PATH}/enable`, async (tx, before) => {
    await tx`
      update webhook_endpoints set disabled_at = null, disabled_reason = null,
        key_chain_id = ${before.owner ? tx`key_chain_id` : access.chainId} where id = ${id}`
    await forgetFailures(tx, id, before.isFailing || before.isDisabled)
  })
}

async function forgetFailures(tx: Tx, id: string, hasRecovered: boolean): Promise<void> {
  await tx`update webhook_endpoints set failing_since = null where id = ${id}`
  await tx`
    update webhook_retries set due_at = now(), attempts = 0, failing_since = null where endpoint_id = ${id}`
  if (hasRecovered) await recordCondition(tx, [id], 'recovered')
}

/** Deletes an endpoint with its log. The result of a call in flight is not recorded. */
export async function deleteEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  const { id } = request
  const remove = async (tx: Tx, { merchantCode }: StoredEndpoint) => {
    await tx`delete from webhook_endpoints where id = ${id}`
    await tx`delete from webhook_attempts where merchant_code = ${merchantCode} and endpoint_id = ${id}`
  }
  await changeEndpoint(ctx, request, `DELETE ${ENDPOINT_PATH}`, remove, { mayBeUnreadable: true })
}

/**
 * Gives an endpoint a new secret, which is returned only here; the one before signs beside it until its time has come.
 *
 * While two are valid, the caller has to name the one to keep: if the answer to the first rotation was lost, the
 * receiver still uses the previous one, and a repeated request would cut it off.
 * @throws DomainError as `changeEndpoint` does, `secret_rotating`, and `invalid_request` on `keep`
 */
export async function rotateSecret(
  ctx: ChangeContext & Pick<WebhooksContext, 'encryption'>,
  request: EndpointRequest,
  { keep, previousValidForS }: z.infer<typeof SecretRotation>,
): Promise<z.infer<typeof RotatedSecret>> {
  const { id } = request
  const { encrypt } = ctx.encryption
  const secret = generateSecret()
  const operation = `POST ${ENDPOINT_PATH}/rotate-secret`
  return await changeEndpoint(ctx, request, operation, async (tx, before) => {
    if (before.previousSecret && keep === undefined) {
      const detail = `Two secrets are valid until ${toIso(before.previousSecretUntil)}: name in keep which of them stays valid beside the new one, current or previous`
      throw new DomainError('secret_rotating', detail)
    }
    if (!before.previousSecret && keep === 'previous') {
      throw invalidField('keep', 'must not be previous: only one secret is valid')
    }
    const kept = previousValidForS > 0 ? openKept(ctx, before, keep) : undefined
    const isKept = kept !== undefined
    const [row] = await tx<{ until: string | null }[]>`
      with changed as (
      update webhook_endpoints set secret = ${encrypt(secret, placeSecret(id))},
        previous_secret = ${isKept ? encrypt(kept, placeSecret(id, 'previous_secret')) : null},
        previous_secret_until = ${isKept ? tx`now() + ${previousValidForS} * interval '1 second'` : null}
      where id = ${id} returning previous_secret_until as until)
      select until::text from changed`
    return { id, secret, previousSecretValidUntil: toIso(row?.until ?? null) }
  })
}

/** Opens the secret that stays valid; undefined for one that nobody can open any more, as its data key is lost. */
function openKept(
  { encryption }: Pick<WebhooksContext, 'encryption'>,
  before: StoredEndpoint,
  keep: z.infer<typeof SecretRotation>['keep'],
): string | undefined {
  try {
    const [current, previous] = openSecrets(encryption, before)
    return keep === 'previous' ? previous : current
  } catch (error) {
    // Its key is still being sought.
    if (error instanceof DomainError) throw error
    return undefined
  }
}
