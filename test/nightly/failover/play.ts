import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { runCli } from '../../support/cli.ts'
import { ask } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { AT_REST } from '../audit/at-rest.ts'
import { audit, type Finding } from '../audit/audit.ts'
import { nameIn } from '../audit/ledgers.ts'
import type { ReplicationMode } from '../replication.ts'
import { type Promised, readDatabase, readPromised } from './ledgers.ts'
import { type Load, repeatAll, startLoad } from './load.ts'
import { measureOutage } from './requests.ts'
import { ACCOUNT, type Stage } from './stage.ts'

/** What has to be acknowledged before the primary is killed, and in the time in which the standby receives nothing. */
const BEFORE = { notifications: 25, refunds: 25 }
const UNSENT = { notifications: 5, refunds: 5 }
/** How many of these refunds have moved money by then. */
const MOVED = 3
/** How long the load goes on after the failover, requests are repeated, and everything may take to rest (ms). */
const AFTER_MS = 3_000
const REPEAT_MS = 30_000
const REST_MS = 60_000
/** Nothing was stored since. */
const NEVER = '9999-01-01'
/** What the drill does not read. */
const UNREAD = { phase: 'rest', shown: undefined, fed: undefined } as const
/** What was promised and is not stored, or is stored differently. */
const PROMISES = AT_REST.filter(({ rule }) =>
  [
    'an acknowledged notification is stored',
    'an acknowledged refund is stored as requested',
  ].includes(rule),
)

/** One row of the drill's table. */
export type Outcome = {
  mode: string
  acknowledged: number
  lost: number
  doubled: number
  outageS: number
}

export type Played = {
  outcome: Outcome
  lost: Finding[]
  /** Refunds that had moved money, of which the promoted standby knows nothing. */
  forgotten: string[]
  /** What the auditor finds at rest. */
  findings: Finding[]
  /** How many refunds have which status. */
  refunds: Record<string, number>
}

/** Kills the primary under load, promotes the standby, and accounts for what was acknowledged and what moved. */
export async function playFailover(stage: Stage, mode: ReplicationMode): Promise<Played> {
  const load = startLoad(stage)
  try {
    await untilPromised(stage, load, BEFORE)
    if (mode === 'asynchronous') await loseWal(stage, load)
    const { promised, lost, forgotten, outageS } = await failOver(stage, load)
    await pause(AFTER_MS)
    await load.finish(REST_MS)
    // Every order system learns of the loss, and repeats what it was promised.
    const repeated = mode === 'asynchronous' ? await repeatAll(stage, load, REPEAT_MS) : []
    if (mode === 'asynchronous') await confirmLoss(stage)
    await untilAtRest(stage.replication.primary().url)
    const taken = [...load.taken, ...repeated]
    const atRest = await readPromised(stage, load.orders, taken, mode === 'asynchronous')
    const { stored } = await readDatabase(stage.replication.primary().url, NEVER)
    const findings = audit({ ...UNREAD, ...atRest, stored })
    const { notifications, refunds: promisedRefunds } = promised.acknowledged
    const outcome = {
      mode,
      acknowledged:
        new Set(notifications.map(({ sha256 }) => sha256)).size + promisedRefunds.length,
      lost: lost.length,
      doubled: findings.filter(({ damage }) => damage === 'doubled').length,
      outageS,
    }
    const refunds = countBy(stored.refunds.map(({ status }) => status))
    return { outcome, lost, forgotten, findings, refunds }
  } finally {
    await load.finish(0)
  }
}

/** Waits until so much more is acknowledged. */
export async function untilPromised(
  stage: Pick<Stage, 'gateway'>,
  load: Load,
  { notifications, refunds }: typeof BEFORE,
): Promise<void> {
  const count = async () => {
    const journal = await stage.gateway.readJournal('ipn')
    const taken = journal.filter(({ outcome }) => outcome === 'acknowledged')
    return new Set(taken.map(({ rawBodySha256 }) => rawBodySha256)).size
  }
  const before = { notifications: await count(), refunds: load.taken.length }
  const isEnough = async () =>
    load.taken.length >= before.refunds + refunds &&
    (await count()) >= before.notifications + notifications
  await waitUntil(isEnough, { what: 'acknowledgements', everyMs: 50, timeoutMs: 120_000 })
}

/** Holds the standby's WAL back until enough is promised that it does not have, and money of that has moved. */
async function loseWal(stage: Stage, load: Load): Promise<void> {
  const before = load.taken.length
  stage.replication.holdWal()
  await untilPromised(stage, load, UNSENT)
  const hasMoved = async () => {
    const unsent = new Set(
      load.taken.slice(before).map(({ refundId }) => nameIn(ACCOUNT.merchantCode, refundId)),
    )
    const moved = await stage.gateway.readLedger()
    return moved.filter(({ requestId }) => unsent.has(requestId)).length >= MOVED
  }
  await waitUntil(hasMoved, { what: 'money moves', everyMs: 50, timeoutMs: 60_000 })
}

async function failOver(stage: Stage, load: Load) {
  const { replication, apiUrl } = stage
  const transactionId = load.orders[0]?.transactionId ?? ''
  const killedAt = performance.now()
  await replication.primary().kill()
  const failedAt = new Date().toISOString()
  const promised: Promised = await readPromised(stage, load.orders, load.taken, false)
  const back = measureOutage(apiUrl, transactionId, killedAt)
  await replication.promote()
  const { stored, later } = await readDatabase(replication.primary().url, failedAt)
  // A refund that was requested again in the meantime was lost all the same.
  const refunds = stored.refunds.filter(({ id }) => !later.has(id))
  const lost = audit({ ...UNREAD, ...promised, stored: { ...stored, refunds } }, PROMISES)
  const known = new Set(refunds.map(({ id }) => id))
  const { movements } = promised.moved
  const forgotten = movements.flatMap(({ requestId }) => (known.has(requestId) ? [] : requestId))
  return { promised, lost, forgotten, outageS: await back }
}

/** An operator says that commits were lost, and then releases every refund that is held: the drill looks at nothing. */
async function confirmLoss({ replication }: Stage): Promise<void> {
  const { url } = replication.primary()
  const run = async (...args: string[]) => {
    const { code, out, err } = await runCli(args, { DATABASE_URL: url })
    if (code !== 0) throw new Error(`${args.join(' ')}: ${err}`)
    return out
  }
  await run('restored')
  for (const { id } of Holds.parse(JSON.parse(await run('holds', 'list', '--json')))) {
    await run('holds', 'release', 'refund', id, '--reason', 'the drill')
  }
}

const Holds = z.array(z.looseObject({ target: z.literal('refund'), id: z.string() }))

/**
 * Refunds and transactions that the service still works on: a notification that has ended a refund asks for a query, too.
 * What only a person can decide has a discrepancy.
 */
const WORKING = `
  select refund_id::text from refunds r
  where r.status in ('pending', 'sending', 'unknown', 'accepted') and not exists (select from discrepancies d
    where d.merchant_code = r.merchant_code and d.payment_id = r.payment_id)
  union all
  select transaction_id from transactions
  where lease_id is not null or due_at < now() - interval '5 seconds' or want > claimed and abandoned_at is null`

export async function untilAtRest(url: string): Promise<void> {
  const isAtRest = async () => (await ask(url, WORKING)).length === 0
  await waitUntil(isAtRest, { what: 'everything is at rest', everyMs: 200, timeoutMs: REST_MS })
}

export function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
