import type { Log } from './log.ts'

/** A known condition in which work fails until something outside this process is fixed. */
export type Condition = {
  name: string
  /** What is wrong, as a clause: "the database is unreachable". */
  what: string
  /** What happens to the work meanwhile, as a clause. */
  meanwhile: string
  /** What an operator should look at. */
  look: string
  code?: string | undefined
  /** Conditions that turn out to be caused by this one, or that it ends, and that continue under its name. */
  replaces?: readonly string[]
  /** False for what failed during the condition without showing that it lasts. */
  isSign?: boolean
}

type Outage = {
  condition: Condition
  since: number
  signAt: number
  saidAt: number
  failed: Record<string, number>
  /** The names that it had, each said when it began: one that comes again waits for the reminder. */
  names: Set<string>
}

const REMIND_EVERY_MS = 60_000

type Classify = (error: unknown) => Condition | undefined

const opened = new WeakMap<Log, { outages: ReturnType<typeof openOutageLog>; classify: Classify }>()

/** Opens the outages of a log, for `noteOutage`. Logs when one begins, every minute meanwhile, and when it ends. */
export function openOutageLog(log: Log, classify: Classify, now: () => number = Date.now) {
  const lasting = new Map<string, Outage>()
  const describe = ({ condition, since, failed }: Outage) => ({
    outage: condition.name,
    code: condition.code,
    since: new Date(since).toISOString(),
    failed: Object.keys(failed).length > 0 ? { ...failed } : undefined,
  })
  const lastedS = ({ since }: Outage) => Math.round((now() - since) / 1000)

  function say(outage: Outage, lasts = ''): void {
    const { what, meanwhile, look } = outage.condition
    log.error(describe(outage), `${what}${lasts}: ${meanwhile}; look at ${look}`)
  }

  const outages = {
    /** @param work what failed because of the condition, to be counted */
    note(condition: Condition, work?: string): void {
      const known = lasting.get(condition.name)
      const at = now()
      const replaced = condition.replaces?.map((name) => lasting.get(name)).find(Boolean)
      const fresh = { since: at, saidAt: at, failed: {}, names: new Set<string>() }
      const outage: Outage = known ?? { ...(replaced ?? fresh), condition, signAt: at }
      if (replaced && !known) lasting.delete(replaced.condition.name)
      if (condition.isSign !== false) outage.signAt = at
      outage.condition = { ...outage.condition, code: condition.code ?? outage.condition.code }
      if (work !== undefined) outage.failed[work] = (outage.failed[work] ?? 0) + 1
      if (known) return
      lasting.set(condition.name, outage)
      if (outage.names.has(condition.name)) return
      outage.names.add(condition.name)
      outage.saidAt = at
      say(outage)
    },
    /** Returns the current conditions, with the time since the latest sign (ms). */
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
 * Notes an error that is a sign of a known condition. Instead of a line for each, only `debug` shows them.
 * @param work what failed because of it, in the plural
 * @returns false for any other error, which the caller must log
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
