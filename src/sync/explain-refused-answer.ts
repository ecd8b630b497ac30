import postgres from 'postgres'
import { PaymentElsewhereError } from '../payments/types.ts'

/**
 * Why an answer cannot be stored: it contradicts what is stored, or the database rejects one of its values.
 * @returns undefined for any other error, which the answer did not cause
 */
export function explainRefusedAnswer(error: unknown): string | undefined {
  if (error instanceof PaymentElsewhereError) return error.message
  const refused = error instanceof postgres.PostgresError
  return refused ? `the database rejected the answer (${error.code})` : undefined
}
