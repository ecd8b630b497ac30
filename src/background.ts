import { createAuditPass } from './access/audit-checkpoints.ts'
import { EVENT_RECORDED, EVENTS_PUBLISHED, SYNC_DUE } from './db/names.ts'
import type { FeedContext } from './feed/open-stream.ts'
import { beginPublishing } from './feed/publish-events.ts'
import { recordFigures } from './health/figures.ts'
import { createDeleteExpired, erase } from './maintenance/delete-expired.ts'
import {
  checkOrders,
  followClock,
  forgetUnconfirmed,
  requeueUnhandled,
  warnOfExpiry,
} from './maintenance/housekeeping.ts'
import { checkMissingAccounts } from './maintenance/missing-accounts.ts'
import { releaseUnseen } from './maintenance/processes.ts'
import { recheckFinal, reconcileUnqueried } from './maintenance/rechecks.ts'
import { createServerWatch } from './maintenance/restore.ts'
import { type Pass, startPasses, type WorkerLoop } from './platform/concurrency/worker-loop.ts'
import { beginSync, findRestMs } from './sync/sync-due.ts'
import type { SyncContext } from './sync/types.ts'
import { createDeliveryRound } from './webhooks/deliver.ts'
import { endOrphanedEndpoints } from './webhooks/endpoints.ts'
import type { WebhooksContext } from './webhooks/send.ts'

type BackgroundContext = FeedContext & SyncContext & WebhooksContext

/** A round makes at most a hundred transactions due, so this limits the load that rechecks add to the gateway. */
const RECHECK_EVERY_MS = 2_000
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

export async function startBackground(
  { db: { sql }, metrics, log, lifecycle }: BackgroundContext,
  passes: readonly Pass[],
): Promise<WorkerLoop[]> {
  const onRound = (loop: string) => metrics.loopRound.set({ loop }, Date.now() / 1000)
  return await startPasses(
    { listen: sql.listen, log, stopping: lifecycle.stopping, onRound },
    passes,
  )
}

export function listPasses(ctx: BackgroundContext): readonly Pass[] {
  return [
    {
      name: 'sync',
      channel: SYNC_DUE,
      begin: (onMore) => beginSync(ctx, onMore),
      idleMs: () => findRestMs(ctx),
      // While all call slots are taken, a round finds nothing even if the loop is healthy.
      isHealthy: (count) => count > 0 || ctx.callSlots.free() > 0,
    },
    {
      name: 'publishing',
      channel: EVENT_RECORDED,
      begin: () => beginPublishing(ctx),
      // In case a NOTIFY is lost.
      idleMs: () => Promise.resolve(5_000),
    },
    {
      name: 'webhooks',
      channel: EVENTS_PUBLISHED,
      begin: createDeliveryRound(ctx),
      // In case a NOTIFY is lost; it is also the resolution of retry delays.
      idleMs: () => Promise.resolve(1_000),
    },
    // This adds to the time after which the work of a dead process is taken over.
    every('takeovers', 1_000, () => releaseUnseen(ctx)),
    every('clock', 5_000, () => followClock(ctx)),
    // This only says how soon a failover is logged: whatever sends checks by itself whether it may.
    every('server', 5_000, createServerWatch(ctx)),
    every('rechecks', RECHECK_EVERY_MS, () => recheckFinal(ctx)),
    every('notifications', MINUTE_MS, () => requeueUnhandled(ctx)),
    every('deadlines', MINUTE_MS, () => reconcileUnqueried(ctx)),
    every('accounts', MINUTE_MS, () => checkMissingAccounts(ctx)),
    every('figures', MINUTE_MS, () => recordFigures(ctx)),
    every('unconfirmed', MINUTE_MS, () => forgetUnconfirmed(ctx)),
    every('orders', MINUTE_MS, () => checkOrders(ctx)),
    every('keys', DAY_MS, () => warnOfExpiry(ctx)),
    every('endpoints', MINUTE_MS, () => endOrphanedEndpoints(ctx)),
    whileFound('receivers', MINUTE_MS, () => erase(ctx, 'receivers')),
    whileFound('secrets', MINUTE_MS, () => erase(ctx, 'secrets')),
    whileFound('retention', MINUTE_MS, createDeleteExpired(ctx)),
    whileFound('attempts', MINUTE_MS, () => erase(ctx, 'attempts')),
    whileFound('sessions', MINUTE_MS, () => erase(ctx, 'sessions')),
    whileFound('processes', MINUTE_MS, () => erase(ctx, 'processes')),
    whileFound('audit', MINUTE_MS, createAuditPass(ctx)),
  ]
}

/** A pass that runs and then rests for `everyMs`, whatever it found. */
export function every(name: string, everyMs: number, run: () => Promise<unknown>): Pass {
  return whileFound(name, everyMs, async () => {
    await run()
    return 0
  })
}

/** A pass that goes on at once while it finds work. */
function whileFound(name: string, everyMs: number, run: () => Promise<number>): Pass {
  return {
    name,
    begin: async () => ({ count: await run(), finished: Promise.resolve() }),
    idleMs: () => Promise.resolve(everyMs),
  }
}
