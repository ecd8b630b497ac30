import { type Actor, recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import {
  compareServer,
  describeStop,
  raiseEpoch,
  resumeSending,
  type Sighting,
  type Stop,
  stopSending,
} from '../db/installation.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { changeHold } from '../decisions/holds.ts'
import { lockTransaction, recheckTransaction } from '../decisions/unit-of-work.ts'
import { DomainError } from '../errors.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { listStatusesSql } from '../refunds/lifecycle.ts'

type RestoreContext = Parameters<typeof changeHold>[0]

type Restored = { epoch: number; held: number; asked: number }

const OPERATION = 'restored'
const UNSENT = listStatusesSql('unsent')

const REASON =
  'the database was restored: before you release it, make sure that this refund was not sent, cancelled or declined since'

/**
 * Ends a stop after commits were lost. The gateway is asked about all refunds that have not ended, the epoch is
 * raised, and every refund not sent before is held for a person. Nothing is sent until all of it is done. Repeat it
 * if it was interrupted.
 * @throws DomainError `unavailable` if commits may have been lost again meanwhile
 */
export async function confirmRestore(ctx: RestoreContext, actor: Actor): Promise<Restored> {
  const { sql } = ctx.db
  // A data folder that was copied back is the same server at an earlier moment, which cannot be detected.
  const stopByHand = (tx: Tx) => stopSending(tx, `${actor.name} restored it`)
  const stop = (await compareServer(sql)) ?? (await runInTransaction(sql, stopByHand))
  const asked = await askAboutOpen(sql)
  const epoch = await runInTransaction(sql, raiseEpoch)
  const held = await holdUnsent(ctx, actor)
  await runInTransaction(sql, async (tx) => {
    await resumeSending(tx, stop)
    await recordWrite(tx, ctx.log, actor, describe(`epoch ${epoch}`))
  })
  return { epoch, held, asked }
}

/**
 * Ends a stop without a loss, such as after the database was moved while nothing ran.
 * @returns what was ended
 */
export async function confirmNothingLost(
  sql: Sql,
  log: Log,
  actor: Actor,
): Promise<Stop | undefined> {
  const stop = await compareServer(sql)
  if (!stop) return undefined
  await runInTransaction(sql, async (tx) => {
    await resumeSending(tx, stop)
    await recordWrite(tx, log, actor, describe('nothing lost'))
  })
  return stop
}

const describe = (objectId: string) => ({ operation: OPERATION, merchantCode: null, objectId })

type UnsentRefund = TransactionKey & {
  refundId: string
  paymentId: string
  before: string | null
}

/**
 * Holds the unsent refunds, including those requested since the restore, which may repeat a request whose row was
 * lost. A held one is held again: whoever set the first hold may release it, and did not know of the restore.
 */
async function holdUnsent(ctx: RestoreContext, actor: Actor): Promise<number> {
  const [before] = await ctx.db.sql<{ newest: string }[]>`
    select coalesce(max(id), 0)::text as newest from hold_changes`
  if (!before) throw new Error('the database did not say which holds were set before')
  for (let held = 0; ; ) {
    const rows = await ctx.db.sql<UnsentRefund[]>`
      select merchant_code as "merchantCode", transaction_id as "transactionId", refund_id as "refundId",
        payment_id as "paymentId", hold ->> 'reason' as before
      from refunds as r where status in ${ctx.db.sql.unsafe(UNSENT)} and not exists (
        select from hold_changes as h
        where h.merchant_code = r.merchant_code and h.id > ${before.newest}
          and h.target = 'refund' and h.target_id = r.refund_id::text and h.principal is null)
      order by requested_at limit 100`
    if (rows.length === 0) return held
    for (const { merchantCode, transactionId, refundId: id, paymentId, before } of rows) {
      const isHeld = before !== null && !before.startsWith(REASON)
      const reason = isHeld ? `${REASON}; it was held before: ${before}` : (before ?? REASON)
      const hold = { held: true, reason, operation: OPERATION }
      const transaction = { merchantCode, transactionId }
      const subject = { target: 'refund', merchantCode, id, transaction, paymentId } as const
      try {
        await changeHold(ctx, actor, subject, hold)
        held += 1
      } catch (error) {
        // Its payment is being moved to another transaction, so it is read again.
        if (!(error instanceof DomainError && error.code === 'unavailable')) throw error
      }
    }
  }
}

async function askAboutOpen(sql: Sql): Promise<number> {
  const keys = await sql<TransactionKey[]>`
    select distinct merchant_code as "merchantCode", transaction_id as "transactionId" from refunds
    where status in ('pending', 'sending', 'unknown', 'accepted')
    order by 1, 2`
  for (const key of keys) {
    await runInTransaction(sql, async (tx) => {
      await lockTransaction(tx, key)
      await tx`
        update refunds set due_at = now()
        where merchant_code = ${key.merchantCode} and transaction_id = ${key.transactionId}
          and status in ('pending', 'unknown', 'accepted')`
      await recheckTransaction(tx, key)
    })
  }
  return keys.length
}

const TRUSTED =
  'a standby has taken over, and has every commit that this process knows of; refunds and events are sent again once every process has compared it'

/**
 * Creates a pass that detects that the database is another server, or continues from an earlier moment. From then on
 * nothing is sent, which the log says at once and then every minute.
 */
export function createServerWatch({ db, log }: Pick<Context, 'db' | 'log'>): () => Promise<void> {
  const throttle = createThrottle(60_000)
  const sighting: Sighting = { timeline: undefined, seenAt: undefined }
  let isStopped = false
  return async () => {
    const before = sighting.timeline
    const stop = await compareServer(db.sql, sighting)
    if (stop && throttle(stop.since)) log.error({ since: stop.since }, describeStop(stop))
    if (!stop && isStopped) log.info('refunds and events are sent again')
    const { timeline, isTrusted } = sighting
    if (isTrusted && before !== undefined && before !== timeline) log.info(TRUSTED)
    isStopped = stop !== undefined
  }
}
