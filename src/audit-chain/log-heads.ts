import type { Context } from '../context.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { listChains } from './chains.ts'

const DAY_MS = 86_400_000

/** Writes the heads of all chains to the log, at the first call and then once a day. */
export type HeadLog = { logDaily(): Promise<void> }

/**
 * Makes the log of heads: a record outside the database, to which `cli audit verify --head` compares a chain. It does
 * not depend on anything in the database, so whoever writes there cannot silence it.
 * @param now a monotonic clock (ms)
 */
export function createHeadLog(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  now = () => performance.now(),
): HeadLog {
  let loggedAt: number | undefined
  return {
    async logDaily() {
      if (loggedAt !== undefined && now() - loggedAt < DAY_MS) return
      for (const { merchantCode, headPosition, headHash, headAt } of await listChains(sql)) {
        log.info(
          {
            merchant: merchantCode,
            head: `${headPosition}:${headHash.toString('hex')}`,
            at: toIso(headAt),
          },
          'the head of the audit chain',
        )
      }
      loggedAt = now()
    },
  }
}
