import type { Tx } from '../platform/postgres/types.ts'

/**
 * How many sign-ins a minute may fail from one network, and may be made by one person. A link's token has 256 random
 * bits, so this limits the load and the log, not the chance of a guess.
 */
export const MAX_FAILED_OF_NETWORK = 10
export const MAX_OF_PERSON = 20

/** When the next minute has certainly begun (seconds). */
export const RETRY_AFTER_S = 60

/**
 * Counts a sign-in, over all processes.
 * @param subject whose sign-ins are counted
 * @returns false when as many as `limit` were counted in this minute: this one is not
 */
export async function countSignIn(tx: Tx, subject: string, limit: number): Promise<boolean> {
  const counted = await tx`
    insert into sign_in_attempts as a (subject, minute, attempts)
    values (${subject}, date_trunc('minute', now()), 1)
    on conflict (subject, minute) do update set attempts = a.attempts + 1 where a.attempts < ${limit}
    returning attempts`
  return counted.length > 0
}

/** Takes back what was counted last: the sign-in succeeded. */
export async function uncountSignIn(tx: Tx, subject: string): Promise<void> {
  await tx`
    update sign_in_attempts set attempts = attempts - 1
    where subject = ${subject} and minute = date_trunc('minute', now()) and attempts > 0`
}
