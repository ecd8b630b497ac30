import { recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED } from '../db/channels.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type EndpointRequest, endpointNotFound } from './find-endpoints.ts'
import { liveKeyOf } from './owner.ts'

export const ENDPOINT_PATH = '/v1/webhook-endpoints/{endpointId}'

export type ChangeContext = Pick<Context, 'sql' | 'log'>

/** An endpoint as it is before a change. */
export type LockedEndpoint = {
  merchantCode: string
  url: string
  types: string[]
  /** Whether it gets events that name a refund. */
  withRefunds: boolean
  isDisabled: boolean
  /** Whether the key or the person that it belongs to still has access. */
  isOwned: boolean
}

/**
 * Locks the endpoint, changes it and writes the audit record, in one commit. The lock comes first: fan-out and
 * claims take it too, so the change sees everything that they wrote.
 * @returns the result of the change
 * @throws DomainError `webhook_endpoint_not_found`, and whatever the change throws; nothing is changed then
 */
export async function commitChange<T>(
  ctx: ChangeContext,
  { access, owners, id }: EndpointRequest,
  operation: string,
  change: (tx: Tx, before: LockedEndpoint) => Promise<T>,
): Promise<T> {
  const result = await runInTransaction(ctx.sql, async (tx) => {
    const [row] = await tx<LockedEndpoint[]>`
      select merchant_code as "merchantCode", url, types,
        with_refunds as "withRefunds", disabled_at is not null as "isDisabled",
        exists ${liveKeyOf(tx)} as "isOwned"
      from webhook_endpoints as e
      where id = ${id} and merchant_code = any(${[...owners]}) for update`
    if (!row) throw endpointNotFound(id)
    const { merchantCode } = row
    const changed = await change(tx, row)
    await recordWrite(tx, ctx.log, access, { operation, merchantCode, objectId: id })
    notifyAfterCommit(tx, EVENTS_PUBLISHED)
    return changed
  })
  const { name: key, requestId } = access
  ctx.log.info({ endpointId: id, operation, key, requestId }, 'webhook endpoint changed')
  return result
}
