/** After the n-th failure of a delivery (s); every further one waits as long as after the last. */
const WAITS_S = [5, 30, 120, 600, 3_600, 10_800, 21_600]
const LAST_S = 21_600

/** Up to so much longer, so that what failed together is not sent together again. */
const JITTER = 0.1

/** A receiver that took nothing for so long is given up (ms). */
export const GIVE_UP_AFTER_MS = 5 * 86_400_000

/** How long to wait before a delivery is tried again, after its n-th failure (ms). */
export function waitAfter(failures: number, random: () => number = Math.random): number {
  const base = WAITS_S[failures - 1] ?? LAST_S
  return Math.round(base * 1000 * (1 + JITTER * random()))
}
