import { setTimeout as pause } from 'node:timers/promises'
import { audit, type Finding } from '../audit/audit.ts'
import { listUndecidable } from '../audit/evidence.ts'
import type { Ledgers } from '../audit/ledgers.ts'
import { makeDatabaseHistory } from './database-moves.ts'
import { followFeeds } from './feed.ts'
import { DEFAULT_MODE, makeLedgerLag } from './gateway-moves.ts'
import { countPendingDeliveries, gatherLedgers, type Sources } from './gather.ts'
import { startLoad } from './load.ts'
import { planMoves } from './moves.ts'
import { type Receivers, startReceivers } from './receiver.ts'
import { type Stage, startStage } from './stage.ts'
import { type Counts, heal, playStorm } from './storm.ts'

export type RunOptions = {
  seed: number
  /** How long faults are injected (ms). */
  stormMs: number
  /** New customers per second, of one account or of both. */
  perS: number
  /** How long everything may take to become idle (ms). */
  quietMs: number
  /** Includes webhook receivers: leases of a minute must expire before everything is idle. */
  webhooks: boolean
  log: (line: string) => void
}

export type Result = {
  seed: number
  database: string
  counts: Counts
  ledgers: Ledgers
  problems: Finding[]
  refusals: string[]
  undecidable: number
  quietAfterMs: number
  /** The folder with the processes' output and the database's files; kept only if something is wrong. */
  folder: string
}

/** How often the sandbox tries a notification; a late one arrives within the pause. */
const DELIVERY_ATTEMPTS = 5
const LATE_MS = 5_500
/** Twice a lease of the stage: an order system that waits longer waits in vain. */
const PATIENCE_MS = 33_000
/** At least; as long as the look before took, which reads everything from the service that is to come to rest. */
const LOOK_EVERY_MS = 1_000
const TELL_EVERY = 10

/** Starts everything, plays the storm of the seed under steady load, heals, waits until idle, and audits. */
export async function runChaos(options: RunOptions): Promise<Result> {
  const { seed, log } = options
  const stage = await startStage(seed)
  let damaged = true
  try {
    log(`${stage.database.name}; logs of the processes in ${stage.folder}`)
    const result = await runOnStage(stage, options)
    damaged = result.problems.length > 0 || result.refusals.length > 0
    return result
  } catch (error) {
    // Customers that lose the gateway end this process before the error is logged.
    log(`the run failed: ${error instanceof Error ? error.stack : error}`)
    throw error
  } finally {
    await stage.stop(damaged)
  }
}

async function runOnStage(
  stage: Stage,
  { seed, stormMs, perS, quietMs, webhooks, log }: RunOptions,
): Promise<Result> {
  const { gateway, serviceUrl: apiUrl } = stage
  await gateway.send('PUT', '/refund-mode', DEFAULT_MODE)
  const followers = followFeeds(apiUrl)
  let receivers: Receivers | undefined
  let load: ReturnType<typeof startLoad> | undefined
  try {
    if (webhooks) receivers = await startReceivers(apiUrl)
    const lag = makeLedgerLag(gateway)
    load = startLoad({ seed, perS, gateway, lag, apiUrl })
    const history = makeDatabaseHistory(stage, load, followers)
    const scene = { stage, lag, history }
    const { counts, failed } = await playStorm(scene, planMoves(seed, stormMs), log)
    await heal(scene)
    log('the storm is over, everything works again')
    const healedAt = performance.now()
    await load.finish(PATIENCE_MS)
    log('every order system has its answers')
    const after = { failed, setBack: history.setBack(), databaseUrl: stage.database.url() }
    const sources = { load, followers, receivers, gateway, apiUrl, ...after }
    const ledgers = await awaitRest(sources, healedAt, quietMs, log)
    return {
      seed,
      database: stage.database.name,
      counts,
      ledgers,
      problems: audit(ledgers),
      refusals: load.log.refusals,
      undecidable: listUndecidable(ledgers).length,
      quietAfterMs: performance.now() - healedAt,
      folder: stage.folder,
    }
  } finally {
    // Also after an error: a customer or a reader that goes on would keep this process alive.
    await load?.finish(0).catch(() => {})
    await followers.stop()
    await receivers?.stop()
  }
}

/** Resolves with the ledgers as soon as nothing in them is wrong, or when time is up. */
export async function awaitRest(
  sources: Sources,
  healedAt: number,
  quietMs: number,
  log: (line: string) => void,
): Promise<Ledgers> {
  await pause(Math.max(0, LATE_MS - (performance.now() - healedAt)))
  for (let look = 1; ; look += 1) {
    const lookedAt = performance.now()
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
    await pause(Math.max(LOOK_EVERY_MS, performance.now() - lookedAt))
  }
}
