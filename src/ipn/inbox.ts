import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { TRANSACTIONS_REGISTERED } from '../db/names.ts'
import { createBatcher } from '../platform/concurrency/batcher.ts'
import { TimeoutError } from '../platform/concurrency/timing.ts'
import { notify } from '../platform/postgres/notify.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { formatRegistered } from '../transactions/due.ts'
import { type Receipt, storeNotifications } from './readings.ts'
import type { ReceivedNotification } from './store.ts'

export type Inbox = ReturnType<typeof createInbox>

export type IpnContext = Context & { inbox: Inbox }

/** The gateway has to repeat it. If its commit was running, it may be stored, and then counts as delivered twice. */
export class InboxFullError extends TimeoutError {}

const MAX_BATCH = 500
const MAX_WAITING = 5_000
/** UTF-16 units of uncommitted bodies: 16 to 32 MiB of memory, where 5,000 bodies of 64 KiB would take 320. */
const MAX_CHARACTERS = 16 * 1024 * 1024

/**
 * Commits notifications in batches. A row that the database rejects fails alone. The queue is bounded in number, size
 * and time, so that a slow database causes refusals instead of memory growth.
 */
export function createInbox(sql: Sql, patience: Config['inboxPatience']) {
  const batcher = createBatcher<ReceivedNotification, Receipt>(MAX_BATCH, patience.runTimeoutMs, {
    ...patience,
    onTimeout({ body }, started) {
      if (started) return new InboxFullError('the commit took too long')
      characters -= body.length
      return new InboxFullError('no commit took the notification in time')
    },
  })
  let characters = 0
  const isFull = () =>
    batcher.countQueued() >= MAX_WAITING ||
    characters >= MAX_CHARACTERS ||
    batcher.measureOldestWait() >= patience.staleMs
  async function run(batch: readonly ReceivedNotification[]) {
    try {
      const results = await storeNotifications(sql, batch)
      wakeReaders(sql, batch, results)
      return results
    } finally {
      for (const { body } of batch) characters -= body.length
    }
  }
  return {
    /**
     * Resolves with `stored` once the notification is committed and its transaction is due.
     * @throws InboxFullError when the queue is full or the notification waited too long; database errors unchanged
     */
    store(notification: ReceivedNotification): Promise<Receipt> {
      if (isFull()) {
        return Promise.reject(new InboxFullError('too many notifications wait for the database'))
      }
      characters += notification.body.length
      return batcher.add(notification, run)
    },
    isFull,
    /** How many notifications no commit has taken yet, and the UTF-16 units of all uncommitted bodies. */
    readGauges: () => ({ waiting: batcher.countQueued(), characters }),
    drain: batcher.drain,
  }
}

/** Wakes readers that wait for a transaction: a stored notification may have registered it. */
function wakeReaders(
  sql: Sql,
  batch: readonly ReceivedNotification[],
  results: readonly PromiseSettledResult<Receipt>[],
): void {
  const ids = batch.flatMap((one, place) => {
    const result = results[place]
    const isStored = result?.status === 'fulfilled' && result.value === 'stored'
    return one.kind === 'payment' && isStored ? [one.transactionId] : []
  })
  for (const payload of formatRegistered(ids)) notify(sql, TRANSACTIONS_REGISTERED, payload)
}
