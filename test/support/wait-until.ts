/** The shortest and the longest pause between two checks (ms). */
const [SHORTEST, LONGEST] = [5, 50]

/**
 * Resolves as soon as the condition holds. A check that asks the service or its database takes a processor from what it
 * waits for: it is followed by a pause of four times as long.
 * @param everyMs a pause of this length after every check instead
 * @throws Error naming `what` if it does not hold within `timeoutMs`
 */
export async function waitUntil(
  condition: () => Promise<boolean> | boolean,
  { timeoutMs = 20_000, everyMs, what }: { timeoutMs?: number; everyMs?: number; what: string },
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const askedAt = performance.now()
    if (await condition()) return
    const checkMs = performance.now() - askedAt
    if (askedAt > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    const pauseMs = everyMs ?? Math.min(LONGEST, Math.max(SHORTEST, 4 * checkMs))
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
