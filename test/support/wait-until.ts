/**
 * Resolves as soon as the condition holds; checks it every `everyMs` milliseconds.
 * @throws Error naming `what` if it does not hold within `timeoutMs`
 */
export async function waitUntil(
  condition: () => Promise<boolean> | boolean,
  { timeoutMs = 20_000, everyMs = 5, what }: { timeoutMs?: number; everyMs?: number; what: string },
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
