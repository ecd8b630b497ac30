import { z } from '@hono/zod-openapi'
import { and, asc, eq, isNull } from 'drizzle-orm'
import { type Actor, recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { refundReasons } from '../db/schema.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** The most reasons that an account offers. */
export const MAX_REASONS = 50

/** A reason that people choose from when they ask for a refund. */
export type RefundReason = { id: number; label: string }

/** Lists the reasons that an account offers, in its order; none if it keeps no list of its own. */
export async function listReasons(
  { db }: Pick<Context, 'db'>,
  merchantCode: string,
): Promise<RefundReason[]> {
  const r = refundReasons
  return await db
    .select({ id: r.id, label: r.label })
    .from(r)
    .where(and(eq(r.merchantCode, merchantCode), isNull(r.endedAt)))
    .orderBy(asc(r.position), asc(r.id))
    .limit(MAX_REASONS)
}

/** The text of a reason: one line that leaves room for a remark in the reason of a refund. */
export const ReasonLabel = z
  .string()
  .trim()
  .normalize('NFC')
  .refine((label) => label !== '' && [...label].length <= 80)
  .refine((label) => !/\p{Cc}/u.test(label) && label.isWellFormed())

/** `full`: the account offers as many as it may; `exists`: it offers this one; `gone`: it no longer offers it. */
export type ReasonChanged = 'done' | 'full' | 'exists' | 'gone'

type Change = { merchantCode: string; actor: Actor; operation: string }

/** Offers one more reason, after the others. */
export async function addReason(
  ctx: Pick<Context, 'sql' | 'log'>,
  change: Change,
  label: string,
): Promise<ReasonChanged> {
  return await changeReasons(ctx, change, async (tx) => {
    const { merchantCode } = change
    const [offered] = await tx<{ n: number; last: number; exists: boolean }[]>`
      select count(*)::int as n, coalesce(max(position), 0) as last,
        coalesce(bool_or(lower(label) = lower(${label})), false) as exists
      from refund_reasons where merchant_code = ${merchantCode} and ended_at is null`
    if (!offered) throw new Error('a count has no row')
    if (offered.exists) return { outcome: 'exists' }
    if (offered.n >= MAX_REASONS) return { outcome: 'full' }
    return await insertReason(tx, merchantCode, label, offered.last + 1)
  })
}

/** Offers a reason under another text, in the same place. The old text stays in the history. */
export async function renameReason(
  ctx: Pick<Context, 'sql' | 'log'>,
  change: Change,
  id: number,
  label: string,
): Promise<ReasonChanged> {
  return await changeReasons(ctx, change, async (tx) => {
    const { merchantCode } = change
    const [other] = await tx`
      select from refund_reasons where merchant_code = ${merchantCode} and ended_at is null
        and lower(label) = lower(${label}) and id <> ${id}`
    if (other) return { outcome: 'exists' }
    const position = await endOffer(tx, merchantCode, id)
    if (position === undefined) return { outcome: 'gone' }
    return await insertReason(tx, merchantCode, label, position)
  })
}

/** No longer offers a reason. Refunds keep their text. */
export async function endReason(
  ctx: Pick<Context, 'sql' | 'log'>,
  change: Change,
  id: number,
): Promise<ReasonChanged> {
  return await changeReasons(ctx, change, async (tx) => {
    const position = await endOffer(tx, change.merchantCode, id)
    return position === undefined ? { outcome: 'gone' } : { outcome: 'done', id }
  })
}

/** Moves a reason before the one above it. */
export async function raiseReason(
  ctx: Pick<Context, 'sql' | 'log'>,
  change: Change,
  id: number,
): Promise<ReasonChanged> {
  return await changeReasons(ctx, change, async (tx) => {
    const offered = await tx<{ id: number; position: number }[]>`
      select id, position from refund_reasons
      where merchant_code = ${change.merchantCode} and ended_at is null order by position, id`
    const at = offered.findIndex((one) => one.id === id)
    const [above, own] = [offered[at - 1], offered[at]]
    if (!own) return { outcome: 'gone' }
    if (!above) return { outcome: 'done', id }
    const swapped = [
      { id: own.id, position: above.position },
      { id: above.id, position: own.position },
    ]
    for (const one of swapped) {
      await tx`
        update refund_reasons set position = ${one.position}
        where merchant_code = ${change.merchantCode} and id = ${one.id}`
    }
    return { outcome: 'done', id }
  })
}

type Changed = { outcome: Exclude<ReasonChanged, 'done'> } | { outcome: 'done'; id: number }

/** Makes one change of an account's list at a time, with its audit entry. */
async function changeReasons(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  { merchantCode, actor, operation }: Change,
  work: (tx: Tx) => Promise<Changed>,
): Promise<ReasonChanged> {
  return await runInTransaction(sql, async (tx) => {
    // Not `for update`: whoever records an attempt to send a refund share-locks the row.
    await tx`
      select from merchant_accounts where merchant_code = ${merchantCode} for no key update`
    const changed = await work(tx)
    if (changed.outcome === 'done') {
      await recordWrite(tx, log, actor, { operation, merchantCode, objectId: String(changed.id) })
    }
    return changed.outcome
  })
}

async function insertReason(
  tx: Tx,
  merchantCode: string,
  label: string,
  position: number,
): Promise<Changed> {
  const [stored] = await tx<{ id: number }[]>`
    insert into refund_reasons (merchant_code, label, position)
    values (${merchantCode}, ${label}, ${position}) returning id`
  if (!stored) throw new Error('a reason was not stored')
  return { outcome: 'done', id: stored.id }
}

/** @returns its place; undefined when it is not offered */
async function endOffer(tx: Tx, merchantCode: string, id: number): Promise<number | undefined> {
  const [ended] = await tx<{ position: number }[]>`
    update refund_reasons set ended_at = now()
    where merchant_code = ${merchantCode} and id = ${id} and ended_at is null returning position`
  return ended?.position
}
