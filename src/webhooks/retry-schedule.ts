/** Delays after the n-th failure of a delivery (s); further failures repeat the last. */
const DELAYS_S = [5, 30, 120, 600, 3_600, 10_800, 21_600]
const MAX_DELAY_S = 21_600

/** Maximum share added at random, so that deliveries which failed together do not retry together. */
const JITTER = 0.1

/** An endpoint is disabled once every delivery has failed for this long (ms). */
export const DISABLE_AFTER_MS = 5 * 86_400_000

/** Returns the delay before the next attempt, after the n-th failure of a delivery (ms). */
export function computeRetryDelay(failures: number, random: () => number = Math.random): number {
  const base = DELAYS_S[failures - 1] ?? MAX_DELAY_S
  return Math.round(base * 1000 * (1 + JITTER * random()))
}
