import { expect } from 'vitest'
import { audit } from '../../nightly/audit/audit.ts'
import type { Ledgers, Phase, StoredRefund } from '../../nightly/audit/ledgers.ts'
import { readStored, readStoredRefunds } from '../../nightly/audit/read-stored.ts'
import { emptyTables } from '../../support/database.ts'
import { wake } from './clock.ts'
import { note, showsNow, sum, type World, type Worlds } from './world.ts'

/**
 * Audits the accounts after a step.
 * @param active whose step it was, which may have changed nothing of the other one; undefined if it was of both
 */
export async function checkAccounts(worlds: Worlds, active: World | undefined): Promise<void> {
  const marks = await markRows(worlds)
  for (const world of worlds) {
    const rows = marks.get(world.account.merchantCode) ?? new Map<string, string>()
    const tables = new Set([...rows.keys(), ...world.rows.keys()])
    const changed = [...tables].filter((table) => rows.get(table) !== world.rows.get(table))
    world.rows = rows
    if (active && world !== active) world.changedByOther.push(...changed)
    await checkStep(world, changed.length > 0)
  }
}

/** Leaves nothing due, held or stored behind for the next worlds. */
export async function closeAccounts(worlds: Worlds): Promise<void> {
  for (const world of worlds) await wake(world)
  const [{ sql, stage }] = worlds
  await sql`update merchant_accounts set hold = null where hold is not null`
  await emptyTables(stage.rig.database)
  await sql.unsafe('delete from event_outbox; delete from events; delete from audit_entries')
}

/** Marks every row of the accounts, by account and table: a change of a row, even to the same values, changes its mark. */
async function markRows(worlds: Worlds): Promise<Map<string, Map<string, string>>> {
  const [{ sql, stage }] = worlds
  const codes = worlds.map(({ account }) => account.merchantCode)
  if (stage.tables.length === 0) {
    // Every table whose rows belong to an account.
    const rows = await sql<{ name: string }[]>`
      select table_name as name from information_schema.columns
      where table_schema = 'public' and column_name = 'merchant_code' order by 1`
    stage.tables.push(...rows.map(({ name }) => name))
  }
  const statements = stage.tables.map(
    (table) => `select merchant_code as "merchantCode", '${table}' as "table",
      md5(string_agg(ctid::text || xmin, ' ' order by ctid)) as mark
      from ${table} where merchant_code = any($1) group by merchant_code`,
  )
  const found = await sql.unsafe<{ merchantCode: string; table: string; mark: string }[]>(
    statements.join(' union all '),
    [codes],
    { prepare: true },
  )
  const marks = new Map(codes.map((code) => [code, new Map<string, string>()]))
  for (const { merchantCode, table, mark } of found) marks.get(merchantCode)?.set(table, mark)
  return marks
}

/** A refund's status at the gateway; `none` when it never arrived. */
export function readGatewayStatus({ payments }: World, id: string) {
  const all = payments.flatMap(({ refunds }) => refunds)
  const [first, ...others] = all.filter(({ requestId }) => requestId === id)
  expect(others, 'the gateway took one request id twice').toEqual([])
  return first?.status ?? 'none'
}

export async function readRefunds(world: World): Promise<StoredRefund[]> {
  return await readStoredRefunds(world.sql, ofWorld(world))
}

function ofWorld({ account: { merchantCode }, transactionId }: World) {
  return { merchantCode, transactionId }
}

/**
 * What counts as refunded of each payment beyond what is matched to a refund, from the rows alone;
 * negative when less counts.
 */
export async function readUnmatched(world: World): Promise<Map<string, number>> {
  const { sql, account, transactionId } = world
  const rows = await sql<{ id: string; unmatched: string }[]>`
    select p.payment_id as id, coalesce(p.counted_refunded, p.refunded_amount) - p.refunded_at_first
      - (select coalesce(sum(r.amount), 0) from refunds r where r.merchant_code = p.merchant_code
          and r.payment_id = p.payment_id and r.matched and not r.in_first_sight)
      - (select coalesce(sum(f.amount), 0) from external_refunds f where f.merchant_code = p.merchant_code
          and f.payment_id = p.payment_id and f.matched and f.outcome is null) as unmatched
    from payments p
    where merchant_code = ${account.merchantCode} and transaction_id = ${transactionId}`
  return new Map(rows.map(({ id, unmatched }) => [id, Number(unmatched)]))
}

/** All sides of the account's transaction, with what the test has witnessed. */
async function readLedgers(world: World, phase: Phase): Promise<Ledgers> {
  const { stage, account, transactionId, clockMs, options } = world
  const stored = await readStored(world.sql, ofWorld(world))
  const payments = await Promise.all(
    stored.payments.map(({ id }) => stage.rig.payment(id, account.merchantCode)),
  )
  noteFailed(world, stored.refunds)
  // Of what was asked for and made elsewhere only the ids are compared.
  const unread = { paymentId: '', amount: '0' }
  const portal = [...world.portal].map((requestId) => ({ requestId, ...unread, isBefore: false }))
  const asked = world.asked.map(({ id, key }) => ({ refundId: id, key, ...unread, atMs: 0 }))
  return {
    phase,
    acknowledged: { notifications: [], synced: [], refunds: [], refused: [], asked, portal },
    stored,
    shown: { transactions: [{ id: transactionId, payments }], refunds: [] },
    moved: {
      ...{ dedupes: options.dedupes, refuses: true, ...listMade(world) },
      ...{ accepted: [], failed: [], told: [] },
      sends: new Map(
        [...world.sends].map(([id, times]) => [id, { times, lost: world.lostSends.get(id) ?? 0 }]),
      ),
    },
    fed: undefined,
    witnessed: {
      ...world.told,
      highest: new Map([...world.highest].map(([id, amount]) => [id, String(amount)])),
      holds: [...world.pastHolds, ...world.holds.values()],
      cancelled: world.cancelled,
      waitedMs: new Map(
        (world.restored ? [] : world.asked).map(({ id, atMs }) => [id, clockMs - atMs]),
      ),
      repeatedLate: world.repeatedLate,
      failedAt: world.failedAt,
      misjudged: world.misjudged,
      misreported: world.lies,
      overdrawn: world.overdrawn,
      changedByOther: world.changedByOther,
    },
  }
}

function noteFailed(
  { failedAt, clockMs, lostSends, overdrawn }: World,
  refunds: readonly StoredRefund[],
): void {
  for (const { id, paymentId, status, failure } of refunds) {
    // Its row says that it was not sent in time, because the one that said that it was is lost.
    const isLost = failure === 'not_sent_in_time' && (lostSends.get(id) ?? 0) > 0
    if (isLost) overdrawn.add(paymentId)
    if (status !== 'failed') failedAt.delete(id)
    else if (!failedAt.has(id)) failedAt.set(id, clockMs)
  }
}

function listMade({
  payments,
  transactionId,
}: World): Pick<Ledgers['moved'], 'payments' | 'movements'> {
  const taken = payments.flatMap(({ refunds }) => refunds).filter((one) => one.status !== 'failed')
  return {
    payments: payments.map(({ id, status, amount, refundedAmount }) => ({
      ...{ id, transactionId, status, amount, refundedAmount },
    })),
    movements: taken.map(({ requestId, payment, amount, status }) => ({
      ...{ requestId, paymentId: payment.id, amount, isPending: status === 'accepted' },
      ...{ atMs: 0, isAtRisk: false },
    })),
  }
}

/**
 * What must hold after every step, whatever happened.
 * @param rowsChanged false when the account's rows are what they were at the last audit
 */
export async function checkStep(world: World, rowsChanged: boolean): Promise<void> {
  for (const payment of world.payments) {
    const shown = Math.max(world.highest.get(payment.id) ?? 0, showsNow(world, payment))
    world.highest.set(payment.id, shown)
  }
  const outside = JSON.stringify([listMade(world), [...world.sends], [...world.highest]])
  if (!rowsChanged && outside === world.audited && world.changedByOther.length === 0) return
  world.audited = outside
  const refunds = await checkIn(world, 'open')
  for (const { id, inferred } of refunds) {
    if (inferred && !world.inferred.has(id)) note(world, 'inferred')
    if (inferred) world.inferred.add(id)
  }
  const pausedId = world.pause?.refundId
  const failed = refunds.find(({ id }) => id === pausedId)?.status === 'failed'
  expect(failed && !world.restored, 'failed, and its bytes may still leave').toBe(false)
}

/** Audits the account in a phase of its run. */
export async function checkIn(world: World, phase: Phase): Promise<StoredRefund[]> {
  const ledgers = await readLedgers(world, phase)
  const findings = audit(ledgers)
  const { stored, shown, moved, witnessed } = ledgers
  const facts = { phase, stored, shown, moved, failures: witnessed?.failures }
  const seen = findings.length > 0 ? JSON.stringify(facts, undefined, 1) : ''
  expect(findings, `${world.account.merchantCode} ${seen}`).toEqual([])
  return stored.refunds
}

const SENDABLE = ['awaiting_approval', 'pending', 'sending', 'unknown']

/** The sum of a payment's refunds that the service may still send and that have not reached the gateway. */
export function sumUnsent(
  world: World,
  refunds: readonly StoredRefund[],
  paymentId: string,
): number {
  const unsent = refunds.filter(
    (one) => SENDABLE.includes(one.status) && readGatewayStatus(world, one.id) === 'none',
  )
  return sum(unsent.filter((one) => one.paymentId === paymentId))
}
