/**
 * Returns how long to wait after the n-th failure in a row: exponential backoff with full jitter, from 0 to
 * `base` · 2ⁿ⁻¹ (at most `max`), so that a recovering gateway does not get all retries at once. All in ms.
 */
export function backoff(
  failures: number,
  { base, max }: { base: number; max: number },
  random: () => number = Math.random,
): number {
  return Math.round(random() * double(failures, base, max))
}

/** Returns how long to wait after the n-th poll in a row without a final answer: doubling, without jitter. All in ms. */
export function repoll(polls: number, { base, max }: { base: number; max: number }): number {
  return double(polls, base, max)
}

function double(n: number, base: number, max: number): number {
  return Math.min(max, base * 2 ** (n - 1))
}
