import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { recordWrite } from '../access/audit.ts'
import { lockActor } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED, REGISTRATION_LOCK } from '../db/names.ts'
import { DomainError, invalidField } from '../errors.ts'
import { getApiVersion } from '../events/event.ts'
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
import type {
  EndpointChange,
  NewEndpoint,
  RegisteredEndpoint,
  RotatedSecret,
  SecretRotation,
} from './schemas.ts'
import { generateSecret, openSecrets, placeSecret, type WebhooksContext } from './send.ts'

export const ENDPOINTS_PATH = '/v1/webhook-endpoints'
export const ENDPOINT_PATH = `${ENDPOINTS_PATH}/{endpointId}`

export type ChangeContext = Pick<Context, 'db' | 'log'>

/**
 * Locks an endpoint, changes it and writes the audit record in one commit. The lease is taken away, so the results of
 * calls in flight are not recorded; their events are sent again once the calls have ended.
 * @throws DomainError `webhook_endpoint_not_found`, `scope_missing` if the key may not read what the endpoint gets,
 *   and what the change throws
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
    // The actor is locked before the endpoint, in the same order as when a key ends.
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

/** Endpoints per merchant code. Each of them costs a call per event. */
const MAX_ENDPOINTS = 20

/**
 * Registers an endpoint for the events of an account (`*`: every account) from now on. Only this returns its secret.
 * @throws DomainError `invalid_request` for the `url`, `scope_missing`, `too_many_webhook_endpoints`
 */
export async function registerEndpoint(
  ctx: WebhooksContext,
  access: Access,
  merchantCode: string,
  { url, types: requested }: z.infer<typeof NewEndpoint>,
): Promise<z.infer<typeof RegisteredEndpoint>> {
  const { types } = filterByScope(access, { types: requested && [...new Set(requested)] })
  await requireUrl(ctx, url)
  const id = randomUUID()
  const secret = generateSecret()
  await runInTransaction(ctx.db.sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${tx.unsafe(REGISTRATION_LOCK)})`
    // If retention has deleted all events, the feed ends where the deletion stopped.
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

/**
 * Changes the address or the types of an endpoint. New types apply to everything that was not sent yet; at a new
 * address, everything that waits is due at once. A disabled endpoint stays disabled.
 *
 * The caller must be able to read everything that the endpoint gets, before and after the change: otherwise its key
 * could redirect refund events to itself. It becomes the owner, so that the end of a stolen key ends the redirection.
 * @throws DomainError as `changeEndpoint` does, and `invalid_request` for the `url`
 */
export async function updateEndpoint(
  ctx: WebhooksContext,
  request: EndpointRequest,
  { url, types }: z.infer<typeof EndpointChange>,
): Promise<void> {
  const { access, id } = request
  // The name is resolved first: nothing calls the network while a transaction is open.
  if (url !== undefined) await requireUrl(ctx, url)
  await changeEndpoint(ctx, request, `PATCH ${ENDPOINT_PATH}`, async (tx, before) => {
    const next = types && filterByScope(access, { types: [...new Set(types)] })
    const isMoved = url !== undefined && url !== before.url
    if (!next && !isMoved) return
    await tx`
      update webhook_endpoints set types = ${[...(next ?? before).types]}, url = ${url ?? before.url},
        key_chain_id = ${access.chainId} where id = ${id}`
    if (isMoved) await forgetFailures(tx, id, before.isFailing && !before.isDisabled)
  })
  if (url === undefined) return
  ctx.log.info({ endpointId: id, to: formatOrigin(url) }, 'webhook endpoint has another address')
}

/** Enables an endpoint, which continues where it stopped, in order. If its key has ended, the caller owns it. */
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

export async function deleteEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  const { id } = request
  const remove = async (tx: Tx, { merchantCode }: StoredEndpoint) => {
    await tx`delete from webhook_endpoints where id = ${id}`
    await tx`delete from webhook_attempts where merchant_code = ${merchantCode} and endpoint_id = ${id}`
  }
  await changeEndpoint(ctx, request, `DELETE ${ENDPOINT_PATH}`, remove, { mayBeUnreadable: true })
}

/**
 * Gives an endpoint a new secret, which is returned only here. While two secrets are valid, the caller has to name
 * the one to keep: if the response to the first rotation was lost, the receiver still uses the previous secret, and
 * repeating the request would cut it off.
 * @throws DomainError as `changeEndpoint` does, `secret_rotating`, and `invalid_request` for `keep`
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
    const [row] = await tx<{ until: string | null }[]>`
      with changed as (
      update webhook_endpoints set secret = ${encrypt(secret, placeSecret(id))},
        previous_secret = ${kept ? encrypt(kept, placeSecret(id, 'previous_secret')) : null},
        previous_secret_until = ${kept ? tx`now() + ${previousValidForS} * interval '1 second'` : null}
      where id = ${id} returning previous_secret_until as until)
      select until::text from changed`
    return { id, secret, previousSecretValidUntil: toIso(row?.until ?? null) }
  })
}

/** @returns undefined if nobody can decrypt the secret any more, because its data key is lost */
function openKept(
  { encryption }: Pick<WebhooksContext, 'encryption'>,
  before: StoredEndpoint,
  keep: z.infer<typeof SecretRotation>['keep'],
): string | undefined {
  try {
    const [current, previous] = openSecrets(encryption, before)
    return keep === 'previous' ? previous : current
  } catch (error) {
    // A DomainError means that the data key is still being looked up.
    if (error instanceof DomainError) throw error
    return undefined
  }
}
