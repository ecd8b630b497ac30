import postgres from 'postgres'
import { runConcurrently } from '../../bench/refunds.ts'
import { type Fed, type Ledgers, type Moved, nameIn, type PaymentFacts } from '../audit/ledgers.ts'
import { readStored } from '../audit/read-stored.ts'
import type { SetBack } from './database-moves.ts'
import { type Followers, readFeed } from './feed.ts'
import type { GatewayControl, JournalEntry } from './gateway.ts'
import type { Load } from './load.ts'
import { readShown } from './read-shown.ts'
import type { Receivers } from './receiver.ts'

export type Sources = {
  load: Pick<Load, 'transactions' | 'portal' | 'log'>
  followers: Followers
  receivers: Receivers | undefined
  gateway: GatewayControl
  /** Refunds that the suite made fail at the gateway. */
  failed: string[]
  setBack: SetBack | undefined
  databaseUrl: string
  apiUrl: string
}

/** Reads the ledgers of all sides, each from its own source. */
export async function gatherLedgers(sources: Sources): Promise<Ledgers> {
  const { load, gateway, setBack } = sources
  const { asked, refunds, synced, refused } = load.log
  const journal = await gateway.readJournal('ipn')
  const acknowledged = journal.flatMap((entry, index) => {
    if (entry.outcome !== 'acknowledged') return []
    // What was acknowledged when the copy was made is in it.
    const isSafe = setBack === undefined || setBack.acknowledged.has(index)
    return [{ entry, isAtRisk: !isSafe && Date.parse(entry.at) <= setBack.toMs }]
  })
  const isAtRisk = (one: { beganMs: number; atMs: number }) =>
    setBack !== undefined && one.atMs >= setBack.fromMs && one.beganMs <= setBack.toMs
  const feed = await readFeed(sources.apiUrl)
  const sql = postgres(sources.databaseUrl, { onnotice: () => {} })
  return {
    phase: 'rest',
    acknowledged: {
      notifications: acknowledged.map(({ entry, isAtRisk }) => ({
        ...describeNotification(entry),
        isAtRisk,
      })),
      synced: synced.map((one) => ({ ...one, isAtRisk: isAtRisk(one) })),
      asked: [...asked],
      refunds: refunds.map((one) => ({ ...one, isAtRisk: isAtRisk(one) })),
      refused: [...refused],
      // What the service had seen is lost as well: it sees the payment anew, with what was refunded until then.
      portal: load.portal.map(({ shownMs, ...refund }) => ({
        ...refund,
        isBefore: shownMs === undefined || isAtRisk({ beganMs: shownMs, atMs: shownMs }),
      })),
    },
    stored: await readStored(sql).finally(() => sql.end({ timeout: 1 })),
    shown: await readShown(sources.apiUrl),
    moved: {
      ...(await readMoved(sources)),
      told: acknowledged.flatMap(({ entry, isAtRisk }) =>
        entry.requestId ? [{ requestId: nameOf(entry, entry.requestId), isAtRisk }] : [],
      ),
    },
    fed: {
      read: feed,
      followed: sources.followers.list(),
      taken: sources.receivers && listTaken(sources.receivers, feed, setBack),
    },
  }
}

async function readMoved({
  load,
  gateway,
  failed,
  setBack,
}: Sources): Promise<Omit<Moved, 'told'>> {
  const isAtRisk = ({ atMs }: { atMs: number }) =>
    setBack !== undefined && atMs >= setBack.fromMs && atMs <= setBack.toMs
  const payments: PaymentFacts[] = []
  await runConcurrently([...load.transactions], async (transaction) => {
    payments.push(...(await gateway.readPayments(transaction)))
  })
  const calls = await gateway.readJournal('REFUND')
  const movements = await gateway.readLedger()
  const sends = new Map<string, { times: number; lost: number }>()
  for (const { requestId, ...entry } of calls) {
    if (!requestId) continue
    const id = nameOf(entry, requestId)
    const { times, lost } = sends.get(id) ?? { times: 0, lost: 0 }
    // A process that was held up sends what it recorded before.
    const isLost = setBack !== undefined && Date.parse(entry.at) >= setBack.fromMs
    sends.set(id, { times: times + 1, lost: lost + (isLost ? 1 : 0) })
  }
  return {
    ...{ dedupes: true, refuses: true, payments },
    movements: movements.map((one) => ({ ...one, isAtRisk: isAtRisk(one), isPending: false })),
    accepted: calls.flatMap((entry) =>
      entry.workCode === 0 && entry.requestId
        ? [
            {
              requestId: nameOf(entry, entry.requestId),
              isAtRisk: isAtRisk({ atMs: Date.parse(entry.at) }),
            },
          ]
        : [],
    ),
    failed: [...failed],
    sends,
  }
}

function nameOf({ merchantCode }: JournalEntry, id: string): string {
  return nameIn(merchantCode ?? '', id)
}

function describeNotification(entry: JournalEntry) {
  const { rawBodySha256 = '', requestId, transactionId } = entry
  const isOfPayment = !requestId && transactionId
  return {
    sha256: rawBodySha256,
    transactionId: isOfPayment ? nameOf(entry, transactionId) : undefined,
  }
}

/** Leaves out events of commits that were lost when the database was set back: their positions are used again. */
function listTaken({ taken }: Receivers, feed: Fed['read'], setBack: SetBack | undefined) {
  if (setBack === undefined) return taken.map(({ event }) => event)
  const stands = new Map(feed.map((event) => [event.id, JSON.stringify(event)]))
  return taken
    .filter(({ event, atMs }) => {
      const isAtRisk = atMs >= setBack.fromMs && atMs <= setBack.deliveredMs
      return !isAtRisk || stands.get(event.id) === JSON.stringify(event)
    })
    .map(({ event }) => event)
}

/** Outcomes after which delivery is retried; any other outcome ends it. */
const OPEN_OUTCOMES = ['sending', 'refused', 'unanswered', 'delay']

/** Counts deliveries that are in flight or will be retried: the gateway tries each `attempts` times. */
export function countPendingDeliveries(journal: readonly JournalEntry[], attempts: number): number {
  const begun = journal.filter(({ attempt }) => attempt === 1)
  const over = journal.filter(
    ({ outcome, attempt }) =>
      !OPEN_OUTCOMES.includes(outcome) || (attempt === attempts && outcome !== 'sending'),
  )
  return begun.length - over.length
}
