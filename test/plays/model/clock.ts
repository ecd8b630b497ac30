import { expect } from 'vitest'
import { CLOCK } from '../../../src/platform/postgres/clock.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { makeDue } from '../../../src/transactions/due.ts'
import type { Meanwhile, Moment, Pause } from './wire.ts'
import { note, type World } from './world.ts'

/** Runs rounds until nothing is due. A round that falls asleep continues when it is woken. */
export async function runPass(world: World, { ask }: { ask: boolean }): Promise<void> {
  if (ask) {
    await world.sql`
      update transactions as t set ${makeDue(world.ctx.db.sql)} from ${world.ctx.db.sql.unsafe(CLOCK)}
      where merchant_code = ${world.account.merchantCode} and transaction_id = ${world.transactionId}`
  }
  for (let rounds = 0; rounds < 20; rounds += 1) {
    const asleep = new Promise<Omit<Pause, 'round'>>((resolve) => {
      world.onPause = resolve
    })
    const round = syncDue(world.ctx)
    const end = await Promise.race([round, asleep])
    if (end === 0) return
    if (typeof end !== 'number') world.pause = { ...end, round }
  }
  expect.unreachable('the pass finds no end')
}

/**
 * Runs a pass during which somebody else does something.
 * @returns whether the moment came
 */
export async function playMeanwhile(
  world: World,
  at: Moment,
  run: Meanwhile['run'],
): Promise<boolean> {
  if (world.pause) await wake(world)
  const meanwhile: Meanwhile = { at, run, done: undefined }
  world.meanwhile = meanwhile
  await runPass(world, { ask: true })
  world.meanwhile = undefined
  await meanwhile.done
  return meanwhile.done !== undefined
}

/** The sleeping process continues where it stopped. */
export async function wake(world: World): Promise<void> {
  const { pause } = world
  if (pause) note(world, pause.refundId === undefined ? 'woke' : 'woke and sent')
  world.pause = undefined
  pause?.wake()
  await pause?.round
}

/** Lets time pass: every time of the transaction moves back. */
export async function shiftTime(world: World, ms: number): Promise<void> {
  world.clockMs += ms
  await shiftRows(world, ms)
}

/** The times of each table that move. Attempts keep theirs, by which their answers find them. */
const TIMES = {
  refunds: `requested_at due_at first_sent_at last_sent_at refused_at failure_notified_at success_notified_at
    approved_at no_growth_since return_seen_at resolved_at`,
  payments: 'as_of first_seen_at first_as_of unlisted_since amount_changed_at refunded_fell_at',
  external_refunds: 'first_seen_at notified_at failure_notified_at',
  ipn_events: 'first_received_at',
  gateway_calls: 'sent_at',
  transactions: 'due_at queried_at as_of asked_for_at',
}

/** Moves every time of the transaction's rows back. */
export async function shiftRows(
  { sql, payments, account, transactionId }: World,
  ms: number,
): Promise<void> {
  const updates = Object.entries(TIMES).map(([table, columns]) => {
    const moved = columns
      .split(/\s+/)
      .map((one) => `${one} = ${one} - $1::float8 * interval '1 ms'`)
    const ofPayments = table === 'external_refunds' || table === 'ipn_events'
    const own = ofPayments ? 'payment_id = any($4::text[])' : 'transaction_id = $3'
    return `moved_${table} as (update ${table} set ${moved} where merchant_code = $2 and ${own})`
  })
  const ids = payments.map(({ id }) => id)
  const given = [ms, account.merchantCode, transactionId, ids]
  await sql.unsafe(`with ${updates.join(', ')} select`, given)
}
