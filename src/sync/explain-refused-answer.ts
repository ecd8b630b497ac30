import postgres from 'postgres'
import { PaymentElsewhereError } from '../payments/types.ts'
import { isTransient } from '../platform/postgres/errors.ts'

/**
 * SQLSTATE classes of an error that a value causes: data exceptions, violated constraints, and exceeded limits of
 * a value. Any other error, such as a deadlock or a cancelled statement, is a fault of ours, not of the answer.
 */
const CAUSED_BY_VALUE = /^(22|23|54)/

/**
 * Why an answer cannot be stored: the database rejects one of its values.
 * @returns undefined for any other error, which the answer did not cause
 */
export function explainRefusedAnswer(error: unknown): string | undefined {
  const refused = error instanceof postgres.PostgresError && CAUSED_BY_VALUE.test(error.code)
  return refused ? `the database rejected the answer (${error.code})` : undefined
}

/** Whether the same commit may succeed when it is run again at once. */
export function isWorthRepeating(error: unknown): boolean {
  return error instanceof PaymentElsewhereError || isTransient(error)
}
