import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { runCli } from '../../support/cli.ts'
import { ask } from '../../support/postgres-server.ts'
import type { ReplicationMode } from '../../support/replication.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { findDifferences, findDoubled, findLost, type Promised, readStored } from './audit.ts'
import { type Load, repeatAll, startLoad } from './load.ts'
import { measureOutage } from './requests.ts'
import type { Stage } from './stage.ts'
import type { Outcome } from './table.ts'

/** What has to be acknowledged before the primary is killed, and in the time in which the standby receives nothing. */
const BEFORE = { notifications: 25, refunds: 25 }
const UNSENT = { notifications: 5, refunds: 5 }
/** How many of these refunds have moved money by then. */
const MOVED = 3
/** How long the load goes on after the failover, requests are repeated, and everything may take to rest (ms). */
const AFTER_MS = 3_000
const REPEAT_MS = 30_000
const REST_MS = 60_000

export type Played = {
  outcome: Outcome
  lost: string[]
  /** Refunds that had moved money, of which the promoted standby knows nothing. */
  forgotten: string[]
  doubled: string[]
  /** Where the gateway and the service disagree at rest. */
  differences: string[]
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
    await untilAtRest(stage)
    const stored = await readStored(stage.replication.primary().url)
    const movements = await stage.gateway.readLedger()
    const doubled = findDoubled(load.orders, [...load.taken, ...repeated], movements)
    const lostAtRest = mode === 'synchronous' ? await findLostAtRest(stage, load) : []
    const outcome = {
      mode,
      acknowledged: promised.notifications.size + promised.refunds.length,
      lost: lost.length,
      doubled: doubled.length,
      outageS,
    }
    const differences = [...lostAtRest, ...findDifferences(stored, movements)]
    const refunds = countBy(stored.refunds.map(({ status }) => status))
    return { outcome, lost, forgotten, doubled, differences, refunds }
  } finally {
    await load.finish(0)
  }
}

/** Waits until so much more is acknowledged. */
async function untilPromised(
  stage: Stage,
  load: Load,
  { notifications, refunds }: typeof BEFORE,
): Promise<void> {
  const before = await readPromised(stage, load)
  const isEnough = async () => {
    const now = await readPromised(stage, load)
    return (
      now.notifications.size >= before.notifications.size + notifications &&
      now.refunds.length >= before.refunds.length + refunds
    )
  }
  await waitUntil(isEnough, { what: 'acknowledgements', everyMs: 50, timeoutMs: 60_000 })
}

/** Holds the standby's WAL back until enough is promised that it does not have, and money of that has moved. */
async function loseWal(stage: Stage, load: Load): Promise<void> {
  const before = load.taken.length
  stage.replication.holdWal()
  await untilPromised(stage, load, UNSENT)
  const hasMoved = async () => {
    const unsent = new Set(load.taken.slice(before).map(({ refundId }) => refundId))
    const moved = await stage.gateway.readLedger()
    return moved.filter(({ requestId }) => unsent.has(requestId)).length >= MOVED
  }
  await waitUntil(hasMoved, { what: 'money moves', everyMs: 50, timeoutMs: 60_000 })
}

async function readPromised({ gateway }: Stage, { taken }: Load): Promise<Promised> {
  return { notifications: await gateway.readAcknowledged(), refunds: [...taken] }
}

async function failOver(stage: Stage, load: Load) {
  const { replication, apiUrl } = stage
  const transactionId = load.orders[0]?.transactionId ?? ''
  const killedAt = performance.now()
  await replication.primary().kill()
  const failedAt = new Date().toISOString()
  const promised = await readPromised(stage, load)
  const moved = await stage.gateway.readLedger()
  const back = measureOutage(apiUrl, transactionId, killedAt)
  await replication.promote()
  const { notifications, refunds } = await readStored(replication.primary().url)
  // A refund that was requested again in the meantime was lost all the same.
  const survived = refunds.filter(({ requestedAt }) => requestedAt < failedAt)
  const lost = findLost(promised, { notifications, refunds: survived })
  const known = new Set(survived.map(({ id }) => id))
  const forgotten = moved.flatMap(({ requestId }) => (known.has(requestId) ? [] : requestId))
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

async function findLostAtRest(stage: Stage, load: Load): Promise<string[]> {
  const promised = await readPromised(stage, load)
  return findLost(promised, await readStored(stage.replication.primary().url))
}

/** Refunds and transactions that the service still works on. What only a person can decide has a discrepancy. */
const WORKING = `
  select refund_id::text from refunds r
  where r.status in ('pending', 'sending', 'unknown', 'accepted') and not exists (select from discrepancies d
    where d.merchant_code = r.merchant_code and d.payment_id = r.payment_id)
  union all
  select transaction_id from transactions where lease_id is not null or due_at < now() - interval '5 seconds'`

async function untilAtRest({ replication }: Stage): Promise<void> {
  const isAtRest = async () => (await ask(replication.primary().url, WORKING)).length === 0
  await waitUntil(isAtRest, { what: 'everything is at rest', everyMs: 200, timeoutMs: REST_MS })
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
