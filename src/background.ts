import { addCheckpoint, deleteExpiredEntries } from './access/audit-checkpoints.ts'
import { EVENT_RECORDED, EVENTS_PUBLISHED, SYNC_DUE } from './db/channels.ts'
import type { FeedContext } from './feed/context.ts'
import { beginPublishing } from './feed/publish-events.ts'
import { checkOrders } from './maintenance/check-orders.ts'
import { deleteAttempts } from './maintenance/delete-attempts.ts'
import { createDeleteExpired } from './maintenance/delete-expired.ts'
import { deleteSignIns } from './maintenance/delete-sign-ins.ts'
import { eraseReceivers } from './maintenance/erase-receivers.ts'
import { eraseSecrets } from './maintenance/erase-secrets.ts'
import { forgetUnconfirmed } from './maintenance/forget-unconfirmed.ts'
import { checkMissingAccounts } from './maintenance/missing-accounts.ts'
import { recheckFinal } from './maintenance/recheck-final.ts'
import { reconcileUnqueried } from './maintenance/reconcile-unqueried.ts'
import { requeueUnhandled } from './maintenance/requeue-unhandled.ts'
import { createExpiryWarning } from './maintenance/warn-expiring-keys.ts'
import { startMonitoredLoop, type WorkerLoop } from './platform/concurrency/worker-loop.ts'
import { expireApprovals } from './refunds/approval/expire-approvals.ts'
import type { SyncContext } from './sync/context.ts'
import { beginSync, findRestMs } from './sync/sync-due.ts'
import type { WebhooksContext } from './webhooks/context.ts'
import { createDeliveryRound } from './webhooks/deliver-events.ts'
import { endOrphanedEndpoints } from './webhooks/end-endpoints.ts'

type BackgroundContext = FeedContext & SyncContext & WebhooksContext

const MAINTAIN_EVERY_MS = 60_000
const CHECKPOINT_EVERY_MS = 60_000
/** A fallback in case a NOTIFY is lost. */
const PUBLISH_EVERY_MS = 5_000
/** A fallback in case a NOTIFY is lost, and the resolution of retry delays. */
const DELIVER_EVERY_MS = 1_000
/** With at most a hundred transactions per round, this limits the load that rechecks add to the gateway. */
const RECHECK_EVERY_MS = 2_000

/**
 * Starts the background loops of a process, which run until it stops. They start together, after the process
 * listens on all their channels: a failed start leaves no loop running.
 * @param deliverEveryMs how long a due webhook delivery waits at most without a NOTIFY
 */
export async function startBackground(
  ctx: BackgroundContext,
  deliverEveryMs = DELIVER_EVERY_MS,
): Promise<WorkerLoop[]> {
  const wakeSync = await listenAndWake(ctx, SYNC_DUE)
  const wakePublisher = await listenAndWake(ctx, EVENT_RECORDED)
  const wakeDelivery = await listenAndWake(ctx, EVENTS_PUBLISHED)
  const sync = startSyncLoop(ctx)
  const publisher = startEventPublisher(ctx)
  const delivery = startWebhookDelivery(ctx, deliverEveryMs)
  wakeSync(sync)
  wakePublisher(publisher)
  wakeDelivery(delivery)
  return [
    sync,
    startRequeueAndErasure(ctx),
    startFinalRechecks(ctx),
    startExpiredDeletion(ctx),
    startAuditCheckpoints(ctx),
    publisher,
    delivery,
  ]
}

/**
 * Listens on a channel.
 * @returns a function that sets the loop to wake on every NOTIFY and every reconnection
 */
async function listenAndWake(
  { sql }: Pick<BackgroundContext, 'sql'>,
  channel: string,
): Promise<(loop: WorkerLoop) => void> {
  let wake = () => {}
  await sql.listen(
    channel,
    () => wake(),
    () => wake(),
  )
  return (loop) => {
    wake = loop.wake
  }
}

function startSyncLoop(ctx: BackgroundContext): WorkerLoop {
  return startMonitoredLoop(ctx, {
    name: 'sync',
    begin: (onMore) => beginSync(ctx, onMore),
    idleMs: () => findRestMs(ctx),
    // While all call slots are taken a round finds nothing, whether the loop is healthy or not.
    isHealthy: (count) => count > 0 || ctx.limiter.countFree() > 0,
  })
}

function startEventPublisher(ctx: BackgroundContext): WorkerLoop {
  return startMonitoredLoop(ctx, {
    name: 'publishing',
    begin: () => beginPublishing(ctx),
    idleMs: () => Promise.resolve(PUBLISH_EVERY_MS),
  })
}

function startWebhookDelivery(ctx: BackgroundContext, everyMs: number): WorkerLoop {
  return startMonitoredLoop(ctx, {
    name: 'webhooks',
    begin: createDeliveryRound(ctx),
    idleMs: () => Promise.resolve(everyMs),
  })
}

/** What is not urgent: unhandled notifications, deadlines without a query, missing accounts, mistyped ids, unchecked orders, endpoints without an owner, what is to be erased. */
function startRequeueAndErasure(ctx: BackgroundContext): WorkerLoop {
  const warnOfExpiringKeys = createExpiryWarning(ctx)
  return startMonitoredLoop(ctx, {
    name: 'tidying',
    begin: async () => {
      await requeueUnhandled(ctx)
      await reconcileUnqueried(ctx)
      await checkMissingAccounts(ctx)
      await expireApprovals(ctx)
      await forgetUnconfirmed(ctx)
      await checkOrders(ctx)
      await eraseSecrets(ctx)
      await warnOfExpiringKeys()
      await endOrphanedEndpoints(ctx)
      return { count: await eraseReceivers(ctx), finished: Promise.resolve() }
    },
    idleMs: () => Promise.resolve(MAINTAIN_EVERY_MS),
  })
}

/** Makes final transactions due for a recheck. Returns no count, so that each round is followed by a pause. */
function startFinalRechecks(ctx: BackgroundContext): WorkerLoop {
  return startMonitoredLoop(ctx, {
    name: 'reconciling',
    begin: async () => {
      await recheckFinal(ctx)
      return { count: 0, finished: Promise.resolve() }
    },
    idleMs: () => Promise.resolve(RECHECK_EVERY_MS),
  })
}

/** Deletes rows past their retention. */
function startExpiredDeletion(ctx: BackgroundContext): WorkerLoop {
  const deleteExpired = createDeleteExpired(ctx)
  return startMonitoredLoop(ctx, {
    name: 'removing',
    begin: async () => {
      const count =
        (await deleteExpired()) +
        (await deleteAttempts(ctx)) +
        (await deleteSignIns(ctx)) +
        (await deleteExpiredEntries(ctx))
      return { count, finished: Promise.resolve() }
    },
    idleMs: () => Promise.resolve(MAINTAIN_EVERY_MS),
  })
}

/** Signs the audit entries that are old enough. */
function startAuditCheckpoints(ctx: BackgroundContext): WorkerLoop {
  return startMonitoredLoop(ctx, {
    name: 'checkpoints',
    begin: async () => ({ count: await addCheckpoint(ctx), finished: Promise.resolve() }),
    idleMs: () => Promise.resolve(CHECKPOINT_EVERY_MS),
  })
}
