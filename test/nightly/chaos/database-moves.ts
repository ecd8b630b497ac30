import { setTimeout as pause } from 'node:timers/promises'
import type { Followers } from './feed.ts'
import type { Load } from './load.ts'
import type { Move } from './moves.ts'
import type { Stage } from './stage.ts'

export type DatabaseMove = Extract<
  Move,
  {
    kind: 'kill database' | 'pause database' | 'copy database' | 'set back database' | 'fail over'
  }
>

/** The database of a storm, and what happened to it. */
export type DatabaseHistory = {
  /**
   * Makes one move and waits until it is over. The moves take turns.
   * @returns the name under which it is counted, undefined if it could not be made here
   */
  play(move: DatabaseMove): Promise<string | undefined>
  setBack(): SetBack | undefined
}

/** By then every order system has the answer to a request from before, or has given it up. */
const ANSWERED_MS = 8_500

export function makeDatabaseHistory(
  stage: Stage,
  load: Pick<Load, 'recover'>,
  followers: Pick<Followers, 'restart'>,
): DatabaseHistory {
  const { database, gateway } = stage
  let turn: Promise<unknown> = Promise.resolve()
  let copied: Pick<SetBack, 'fromMs' | 'acknowledged'> | undefined
  let setBack: SetBack | undefined

  async function copy(): Promise<string> {
    await database.kill()
    const fromMs = Date.now()
    const journal = await gateway.readJournal('ipn')
    const acknowledged = new Set(
      journal.flatMap(({ outcome }, index) => (outcome === 'acknowledged' ? [index] : [])),
    )
    // No process of it runs, so nothing is committed meanwhile.
    copied = { fromMs, acknowledged }
    await database.copy()
    await database.start()
    return 'database copied'
  }
  async function goBack(processes: 'go on' | 'restart'): Promise<string> {
    if (copied === undefined) throw new Error('there is no copy of the database')
    await database.kill()
    const toMs = Date.now()
    setBack = { ...copied, toMs, deliveredMs: toMs + DELIVERY_MS }
    if (processes === 'restart') for (const member of stage.members()) member.kill()
    followers.restart()
    await database.setBack()
    await database.start()
    return 'database set back'
  }
  async function make(move: DatabaseMove): Promise<string | undefined> {
    switch (move.kind) {
      case 'kill database':
        await database.kill()
        await pause(move.forMs)
        await database.start()
        return 'kill -9 database'
      case 'pause database':
        database.pause()
        await pause(move.forMs)
        database.resume()
        return 'pause database'
      case 'copy database':
        return await copy()
      case 'set back database':
        return await goBack(move.processes)
      default: {
        const { failOver } = database
        if (failOver === undefined) return undefined
        await failOver()
        return 'database failed over'
      }
    }
  }
  return {
    async play(move) {
      const made = turn.then(() => make(move))
      turn = made.catch(() => {})
      const name = await made
      if (move.kind === 'set back database' && setBack) {
        await pause(ANSWERED_MS)
        load.recover(setBack.fromMs, setBack.toMs)
      }
      return name
    },
    setBack: () => setBack,
  }
}

/** The time whose commits were lost when the database was set back to an earlier moment (ms since the epoch). */
export type SetBack = {
  /** No commit from before it is lost, and none from after `toMs`. */
  fromMs: number
  toMs: number
  /** Until then a receiver may get events that were committed before. */
  deliveredMs: number
  /** The places in the journal of deliveries that were acknowledged before. */
  acknowledged: ReadonlySet<number>
}

/** How long a delivery by webhook that was on its way may take to arrive. */
const DELIVERY_MS = 15_000
