import { shiftRows } from './clock.ts'
import type { World } from './world.ts'

const KEY = 'merchant_code = $2 and transaction_id = $1'
const OF_PAYMENTS = `merchant_code = $2 and payment_id in (select payment_id from payments where ${KEY})`

/** The rows of an account's transaction, oldest table of references first. */
const TABLES = [
  ['transactions', KEY],
  ['payments', KEY],
  ['refunds', KEY],
  [
    'refund_attempts',
    `merchant_code = $2 and refund_id in (select refund_id from refunds where ${KEY})`,
  ],
  ['external_refunds', OF_PAYMENTS],
  ['ipn_events', OF_PAYMENTS],
  ['gateway_calls', KEY],
  ['changes', KEY],
  ['discrepancies', KEY],
] as const

/** A transaction's rows at an earlier moment, and what was known of it then. */
export type Saved = { rows: readonly (readonly [string, string])[] } & Pick<
  World,
  'clockMs' | 'cancelled' | 'holds' | 'decided' | 'sends'
> & { said: Said }

/** What people said, which is lost with its commits. */
type Said = Pick<World['told'], 'saidReturned' | 'neverHappened' | 'firstSight'>

function copySaid({ saidReturned, neverHappened, firstSight }: Said): Said {
  return {
    saidReturned: new Map(saidReturned),
    neverHappened: new Set(neverHappened),
    firstSight: new Set(firstSight),
  }
}

/** Copies the rows of the transaction, as a standby that lags or a backup has them. */
export async function save(world: World): Promise<Saved> {
  const rows: [string, string][] = []
  for (const [table, where] of TABLES) {
    const [row] = await world.sql.unsafe<{ rows: string }[]>(
      `select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${table} t where ${where}`,
      [world.transactionId, world.account.merchantCode],
    )
    rows.push([table, row?.rows ?? '[]'])
  }
  const { clockMs, cancelled, holds, sends } = world
  return {
    rows,
    clockMs,
    cancelled: new Set(cancelled),
    decided: new Map(world.decided),
    holds: new Map(holds),
    sends: new Map(sends),
    said: copySaid(world.told),
  }
}

/** Sets the transaction back to what was saved: every commit since is lost. The account's own hold is kept. */
export async function restore(world: World, saved: Saved): Promise<void> {
  const key = [world.transactionId, world.account.merchantCode]
  await world.sql.begin(async (tx) => {
    for (const [table, where] of TABLES.toReversed()) {
      // Before the rows that it is found by.
      await tx.unsafe(`delete from ${table} where ${where}`, key)
    }
    for (const [table, rows] of saved.rows) {
      await tx.unsafe(
        `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::text::jsonb)`,
        [rows],
      )
    }
    await tx.unsafe(`update transactions set lease_id = null where ${KEY}`, key)
  })
  await shiftRows(world, world.clockMs - saved.clockMs)
  for (const [id, times] of world.sends) {
    const since = times - (saved.sends.get(id) ?? 0)
    world.lostSends.set(id, (world.lostSends.get(id) ?? 0) + since)
  }
  world.cancelled = saved.cancelled
  world.decided = saved.decided
  Object.assign(world.told, saved.said)
  const ofAccount = [...world.holds].filter(([, { target }]) => target === 'merchant')
  const others = [...saved.holds].filter(([, { target }]) => target !== 'merchant')
  world.holds = new Map([...ofAccount, ...others])
}
