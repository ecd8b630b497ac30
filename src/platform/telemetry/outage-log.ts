import type { Log } from './log.ts'

/** A known condition in which work fails until something outside this process is mended. */
export type Condition = {
  /** Tells conditions apart. */
  name: string
  /** What is the case, as a clause: "the database is unreachable". */
  what: string
  /** What becomes of the work meanwhile, as a clause. */
  meanwhile: string
  /** What a person looks at. */
  look: string
  code?: string | undefined
  /** A condition that this one turns out to be the cause of: it goes on under the new name. */
  replaces?: string | undefined
}

/** The outages that one log tells of: a line when one begins, one a minute while it lasts, and one when it has ended. */
export type OutageLog = {
  /** Takes note of a sign of a condition. @param work what failed because of it, counted in the lines */
  note(condition: Condition, work?: string): void
  /** Returns the conditions that last, with the time since their newest sign (ms). */
  list(): (Condition & { quietMs: number })[]
  /** Logs the end of a condition, if it lasted. */
  end(name: string): void
  /** Logs the conditions that have lasted for another minute. */
  remind(): void
}

type Outage = {
  condition: Condition
  since: number
  signAt: number
  saidAt: number
  /** How often each kind of work has failed. */
  failed: Record<string, number>
}

const REMIND_EVERY_MS = 60_000

/** Says what an error is a sign of; undefined for any other error. */
type Classify = (error: unknown) => Condition | undefined

const opened = new WeakMap<Log, { outages: OutageLog; classify: Classify }>()

/**
 * Opens the outages of a log: `noteOutage` with the same log takes note of them from now on.
 * @param now a clock (ms since 1970)
 */
export function openOutageLog(
  log: Log,
  classify: Classify,
  now: () => number = Date.now,
): OutageLog {
  const lasting = new Map<string, Outage>()
  const describe = ({ condition, since, failed }: Outage) => ({
    outage: condition.name,
    code: condition.code,
    since: new Date(since).toISOString(),
    failed: { ...failed },
  })
  const lastedS = ({ since }: Outage) => Math.round((now() - since) / 1000)

  const outages: OutageLog = {
    note(condition, work) {
      const known = lasting.get(condition.name)
      const at = now()
      const replaced = known ? undefined : lasting.get(condition.replaces ?? '')
      const { since, failed } = replaced ?? { since: at, failed: {} }
      const outage = known ?? { condition, since, signAt: at, saidAt: at, failed }
      if (replaced) lasting.delete(replaced.condition.name)
      outage.signAt = at
      if (work !== undefined) outage.failed[work] = (outage.failed[work] ?? 0) + 1
      if (known) return
      lasting.set(condition.name, outage)
      const { what, meanwhile, look } = condition
      log.error(describe(outage), `${what}: ${meanwhile}; look at ${look}`)
    },
    list: () =>
      [...lasting.values()].map(({ condition, signAt }) => ({
        ...condition,
        quietMs: Math.max(0, now() - signAt),
      })),
    end(name) {
      const outage = lasting.get(name)
      if (!outage) return
      lasting.delete(name)
      log.info(describe(outage), `over after ${lastedS(outage)} s: ${outage.condition.what}`)
    },
    remind() {
      for (const outage of lasting.values()) {
        if (now() - outage.saidAt < REMIND_EVERY_MS) continue
        outage.saidAt = now()
        const { what, meanwhile, look } = outage.condition
        const lasts = `for ${lastedS(outage)} s now`
        log.error(describe(outage), `${what}, ${lasts}: ${meanwhile}; look at ${look}`)
      }
    },
  }
  opened.set(log, { outages, classify })
  return outages
}

/**
 * Takes note of an error that is a sign of a known condition, instead of a line for each, which only `debug` shows.
 * @param work what failed because of it, in the plural
 * @returns false for any other error, which the caller logs
 */
export function noteOutage(log: Log, error: unknown, work: string): boolean {
  const found = opened.get(log)
  const condition = found?.classify(error)
  if (!found || !condition) return false
  found.outages.note(condition, work)
  log.debug({ err: error, outage: condition.name, work }, 'this failed because of an outage')
  return true
}

/** Returns the conditions of a log that last. */
export function listOutages(log: Log): readonly Condition[] {
  return opened.get(log)?.outages.list() ?? []
}
