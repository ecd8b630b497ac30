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
  /** Of the newest sign. */
  code?: string | undefined
  /** A condition that this one turns out to be the cause of: it goes on under the new name. */
  replaces?: string | undefined
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

type Classify = (error: unknown) => Condition | undefined

const opened = new WeakMap<Log, { outages: ReturnType<typeof openOutageLog>; classify: Classify }>()

/**
 * Opens the outages of a log: `noteOutage` with the same log takes note of them from now on. There is a line when one
 * begins, one a minute while it lasts, and one when it has ended.
 */
export function openOutageLog(log: Log, classify: Classify, now: () => number = Date.now) {
  const lasting = new Map<string, Outage>()
  const describe = ({ condition, since, failed }: Outage) => ({
    outage: condition.name,
    code: condition.code,
    since: new Date(since).toISOString(),
    failed: { ...failed },
  })
  const lastedS = ({ since }: Outage) => Math.round((now() - since) / 1000)

  /** Tells of a condition that has begun, or that has lasted for some time. */
  function say(outage: Outage, lasts = ''): void {
    const { what, meanwhile, look } = outage.condition
    log.error(describe(outage), `${what}${lasts}: ${meanwhile}; look at ${look}`)
  }

  const outages = {
    /** @param work what failed because of the condition, counted in the lines */
    note(condition: Condition, work?: string): void {
      const known = lasting.get(condition.name)
      const at = now()
      const replaced = known ? undefined : lasting.get(condition.replaces ?? '')
      const { since, failed } = replaced ?? { since: at, failed: {} }
      const outage = known ?? { condition, since, signAt: at, saidAt: at, failed }
      if (replaced) lasting.delete(replaced.condition.name)
      outage.signAt = at
      outage.condition = { ...outage.condition, code: condition.code ?? outage.condition.code }
      if (work !== undefined) outage.failed[work] = (outage.failed[work] ?? 0) + 1
      if (known) return
      lasting.set(condition.name, outage)
      say(outage)
    },
    /** Returns the conditions that last, with the time since their newest sign (ms). */
    list: () =>
      [...lasting.values()].map(({ condition, signAt }) => ({
        ...condition,
        quietMs: Math.max(0, now() - signAt),
      })),
    end(name: string): void {
      const outage = lasting.get(name)
      if (!outage) return
      lasting.delete(name)
      log.info(
        describe(outage),
        `back after ${lastedS(outage)} s: "${outage.condition.what}" is over, and what failed is repeated; nothing has to be done`,
      )
    },
    /** Logs the conditions that have lasted for another minute. */
    remind(): void {
      for (const outage of lasting.values()) {
        if (now() - outage.saidAt < REMIND_EVERY_MS) continue
        outage.saidAt = now()
        say(outage, `, for ${lastedS(outage)} s now`)
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

export function listOutages(log: Log): readonly Condition[] {
  return opened.get(log)?.outages.list() ?? []
}
