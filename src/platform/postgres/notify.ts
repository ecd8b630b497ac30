import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '../concurrency/timing.ts'
import type { Sql, Tx } from './types.ts'

// NOTIFY is sent after the commit it announces. A transaction with NOTIFY takes a server-wide lock before it waits
// for the disk, unless it contains nothing but NOTIFY: then it writes no WAL and does not wait.

/** Notifications within this time share a statement (ms), since under load not every commit needs its own wake-up. */
const PACE_MS = 5

/** How long to wait for a statement (ms), so that an unresponsive connection does not delay the others. */
const GIVE_UP_MS = 5_000

/** All schemas of a database share its channels, so in any schema but `public` their names begin with the schema's. */
const CHANNEL = `case current_schema() when 'public' then channel else current_schema() || '.' || channel end`

/** Returns a channel's name as `notify` writes it. */
export const nameChannel = (schema: string | null, channel: string) =>
  schema === null || schema === 'public' ? channel : `${schema}.${channel}`

type Notification = { channel: string; payload: string }

type Sender = { waiting: Map<string, Notification>; running: boolean }

const senders = new WeakMap<Sql, Sender>()

/**
 * Sends a NOTIFY for a committed change soon. One statement is in flight per pool, and equal notifications in the
 * meantime become one. A lost connection loses notifications, so every listener must also poll.
 */
export function notify(sql: Sql, channel: string, payload = ''): void {
  const sender = senders.get(sql) ?? { waiting: new Map(), running: false }
  senders.set(sql, sender)
  sender.waiting.set(`${channel} ${payload}`, { channel, payload })
  if (sender.running) return
  sender.running = true
  void send(sql, sender)
}

async function send(sql: Sql, sender: Sender): Promise<void> {
  // A commit asks for several at once, which share a statement.
  await Promise.resolve()
  while (sender.waiting.size > 0) {
    const rows = JSON.stringify([...sender.waiting.values()])
    sender.waiting.clear()
    // What fails here is made up for by the listeners' polls.
    const statement = sql`
      select pg_notify(${sql.unsafe(CHANNEL)}, payload)
      from json_to_recordset(${rows}::json) as n (channel text, payload text)`
    await withTimeout(GIVE_UP_MS, statement).catch(() => {})
    await pause(PACE_MS, undefined, { ref: false })
  }
  sender.running = false
}

type Work = (sql: Sql) => void

const pending = new WeakMap<Tx, Work[]>()

/** Sends a NOTIFY once the unit of work has committed; none if it rolls back. */
export function notifyAfterCommit(tx: Tx, channel: string, payload = ''): void {
  const collected = pending.get(tx)
  if (!collected) throw new Error('a NOTIFY needs a unit of work whose commit it can follow')
  collected.push((sql) => notify(sql, channel, payload))
}

/** Runs work that cannot fail after the unit of work commits; outside of one at once, since each statement commits. */
export function runAfterCommit(tx: Tx, work: () => void): void {
  const collected = pending.get(tx)
  if (collected) collected.push(work)
  else work()
}

/** Collects what a unit of work does after its commit; the returned function does it. */
export function collectAfterCommit(sql: Sql, tx: Tx): () => void {
  const collected: Work[] = []
  pending.set(tx, collected)
  return () => {
    for (const work of collected) work(sql)
  }
}
