/**
 * Resolves as soon as the condition holds, which is asked every few milliseconds.
 * @throws Error naming `what` was waited for when it does not hold within `timeoutMs`
 */
export async function waitUntil(
  condition: () => Promise<boolean> | boolean,
  { timeoutMs = 10_000, what }: { timeoutMs?: number; what: string },
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
