import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '../concurrency/timing.ts'
import type { Sql, Tx } from './types.ts'

// NOTIFY is sent after the commit it announces, never in it: such a commit takes a lock of the whole server before it waits
// for the disk. A transaction of nothing but NOTIFY writes no WAL, so it holds that lock without waiting.

/** What gathers within this time shares a statement (ms): under load a wake-up a commit is not needed. */
const PACE_MS = 5

/** How long to wait for a statement: an unresponsive connection must not delay the others (ms). */
const GIVE_UP_MS = 5_000

/** Postgres has one set of channels for a database: those of a schema other than `public` begin with its name. */
const CHANNEL = `case current_schema() when 'public' then channel else current_schema() || '.' || channel end`

/** Returns the name of a channel as `notify` writes it. */
export const nameChannel = (schema: string | null, channel: string) =>
  schema === null || schema === 'public' ? channel : `${schema}.${channel}`

type Notification = { channel: string; payload: string }

type Sender = { waiting: Map<string, Notification>; running: boolean }

const senders = new WeakMap<Sql, Sender>()

/**
 * Sends a NOTIFY for something that is committed, soon and once: one statement is in flight per pool, and equal
 * notifications become one meanwhile. It can be lost with its connection, so every listener has to poll as well.
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
  while (sender.waiting.size > 0) {
    const rows = JSON.stringify([...sender.waiting.values()])
    sender.waiting.clear()
    // The listeners' polls replace what fails here.
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

/** Sends a NOTIFY once the unit of work has committed, and none if it rolls back. */
export function notifyAfterCommit(tx: Tx, channel: string, payload = ''): void {
  const collected = pending.get(tx)
  if (!collected) throw new Error('a NOTIFY needs a unit of work whose commit it can follow')
  collected.push((sql) => notify(sql, channel, payload))
}

/**
 * Does something that cannot fail once the unit of work has committed, and not if it rolls back; at once outside of
 * one, where the statement before was a commit of its own.
 */
export function runAfterCommit(tx: Tx, work: () => void): void {
  const collected = pending.get(tx)
  if (collected) collected.push(work)
  else work()
}

/** Starts to collect what a unit of work does after its commit, which the returned function does. */
export function collectAfterCommit(sql: Sql, tx: Tx): () => void {
  const collected: Work[] = []
  pending.set(tx, collected)
  return () => {
    for (const work of collected) work(sql)
  }
}
