import { setTimeout as pause } from 'node:timers/promises'
import { audit, type Problem } from './audit.ts'
import { followFeed } from './feed.ts'
import { countPendingDeliveries, gatherLedgers, type Sources } from './gather.ts'
import type { Ledgers } from './ledgers.ts'
import { startLoad } from './load.ts'
import { planMoves } from './moves.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { ACCOUNT, startStage } from './stage.ts'
import { type Counts, DEFAULT_MODE, heal, playStorm } from './storm.ts'
import { listUndecidable } from './undecidable.ts'

export type RunOptions = {
  seed: number
  /** How long faults are injected (ms). */
  stormMs: number
  /** New transactions per second. */
  perS: number
  /** How long everything may take to become idle (ms). */
  quietMs: number
  /** Includes a webhook receiver: leases of a minute must expire before everything is idle. */
  webhooks: boolean
  log: (line: string) => void
}

export type Result = {
  seed: number
  database: string
  counts: Counts
  ledgers: Ledgers
  problems: Problem[]
  refusals: string[]
  undecidable: number
  quietAfterMs: number
  /** The folder with the processes' output; kept only if something is wrong. */
  folder: string
}

/** How often the sandbox tries a notification; a late one arrives within the pause. */
const DELIVERY_ATTEMPTS = 5
const LATE_MS = 5_500
/** Twice a lease of the stage: an order system that waits longer waits in vain. */
const PATIENCE_MS = 33_000
const LOOK_EVERY_MS = 1_000
const TELL_EVERY = 10

/** Starts everything, plays the storm of the seed under steady load, heals, waits until idle, and audits. */
export async function runChaos({
  seed,
  stormMs,
  perS,
  quietMs,
  webhooks,
  log,
}: RunOptions): Promise<Result> {
  const stage = await startStage(seed)
  const follower = followFeed(stage.serviceUrl, ACCOUNT.apiKey)
  let receiver: Receiver | undefined
  let damaged = true
  try {
    log(`${stage.database.name}; logs of the processes in ${stage.folder}`)
    await stage.gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
    const { gateway, serviceUrl: apiUrl } = stage
    const key = ACCOUNT.apiKey
    if (webhooks) receiver = await startReceiver(apiUrl, key)
    const load = startLoad({ seed, perS, gateway, apiUrl, key })
    const { counts, failed } = await playStorm(stage, planMoves(seed, stormMs), log)
    await heal(stage)
    log('the storm is over, everything works again')
    const healedAt = performance.now()
    await load.finish(PATIENCE_MS)
    log('every order system has its answers')
    const databaseUrl = stage.database.url
    const sources = { load, follower, receiver, gateway, failed, databaseUrl, apiUrl, key }
    const ledgers = await awaitRest(sources, healedAt, quietMs, log)
    const problems = audit(ledgers)
    damaged = problems.length > 0 || load.refusals.length > 0
    return {
      seed,
      database: stage.database.name,
      counts,
      ledgers,
      problems,
      refusals: load.refusals,
      undecidable: listUndecidable(ledgers).length,
      quietAfterMs: performance.now() - healedAt,
      folder: stage.folder,
    }
  } catch (error) {
    // Customers that lose the gateway end this process before the error is logged.
    log(`the run failed: ${error instanceof Error ? error.stack : error}`)
    throw error
  } finally {
    await follower.stop()
    await receiver?.stop()
    await stage.stop(damaged)
  }
}

/** Resolves with the ledgers as soon as nothing in them is wrong, or when time is up. */
async function awaitRest(
  sources: Sources,
  healedAt: number,
  quietMs: number,
  log: (line: string) => void,
): Promise<Ledgers> {
  await pause(Math.max(0, LATE_MS - (performance.now() - healedAt)))
  for (let look = 1; ; look += 1) {
    const pending = countPendingDeliveries(
      await sources.gateway.readJournal('ipn'),
      DELIVERY_ATTEMPTS,
    )
    const ledgers = await gatherLedgers(sources)
    const problems = audit(ledgers)
    if (pending === 0 && problems.length === 0) return ledgers
    if (performance.now() - healedAt > quietMs) return ledgers
    if (look % TELL_EVERY === 0) {
      log(`not idle yet: ${pending} deliveries, ${problems.length} problems, ${problems[0]?.rule}`)
    }
    await pause(LOOK_EVERY_MS)
  }
}
