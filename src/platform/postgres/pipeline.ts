import postgres from 'postgres'
import { isConnectionLost } from './errors.ts'

/**
 * Sends several statements of one unit of work together, without waiting for results in between. They
 * share one connection: Postgres runs them one after the other, in the order of the arguments, and each
 * sees what those before it wrote.
 *
 * Pass either bare statements or calls of functions whose first `await` is a statement, not both kinds: a
 * function sends its statement when it is called, a bare statement is sent only here. The second statement
 * of a function runs after the first ones of all arguments.
 * @param statements `false` sends nothing
 * @returns the results, in the order of the arguments
 * @throws the error of the first statement that failed; after it the server refuses all others (25P02)
 */
export async function pipeline<T extends readonly (PromiseLike<unknown> | false)[]>(
  ...statements: T
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  const sent = statements.map((one) => Promise.resolve(one))
  const results = await Promise.race([Promise.allSettled(sent), rejectOnLoss(sent)])
  const failed = results.flatMap((one) => (one.status === 'rejected' ? [one] : []))
  // A function learns of its error later than a bare statement does of the refusal that follows.
  const cause = failed.find(({ reason }) => !isRefusedAfterError(reason)) ?? failed[0]
  if (cause) throw cause.reason
  return await Promise.all(statements)
}

/** With its connection, the driver (3.4.9) drops statements that it has not sent yet: they would never settle. */
function rejectOnLoss(sent: readonly Promise<unknown>[]): Promise<never> {
  return new Promise((_, reject) => {
    for (const one of sent) {
      one.catch((error: unknown) => {
        if (isConnectionLost(error)) reject(error)
      })
    }
  })
}

function isRefusedAfterError(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '25P02'
}
