/**
 * How long to wait after the n-th failure in a row: exponential with full jitter, that is anything
 * from 0 to `base` · 2ⁿ⁻¹ (at most `max`), so that a recovering gateway is not met by everyone at once.
 * All in ms.
 */
export function backoff(
  failures: number,
  { base, max }: { base: number; max: number },
  random: () => number = Math.random,
): number {
  return Math.round(random() * grow(failures, base, max))
}

/** How long to wait after the n-th answer in a row that was not final: doubling, without jitter. All in ms. */
export function repoll(polls: number, { base, max }: { base: number; max: number }): number {
  return grow(polls, base, max)
}

function grow(n: number, base: number, max: number): number {
  return Math.min(max, base * 2 ** (n - 1))
}
