import type { Context } from '../context.ts'

export type CardsContext = Context & { cardCache: ReturnType<typeof createCardCache> }

/** In characters; the oldest answers are evicted first. */
const MAX_SIZE = 16 * 1024 * 1024

/**
 * Caches answers for a short time. Equal reads at the same time share one load.
 * @param maxAgeMs counted from the start of the load; 0 disables the cache
 */
export function createCardCache(
  maxAgeMs: number,
  { maxSize = MAX_SIZE, now = () => performance.now() } = {},
) {
  const cached = new Map<string, { answer: string; loadedAt: number }>()
  const pending = new Map<string, Promise<string>>()
  const sizeOf = (key: string, answer = '') => (answer === '' ? 0 : key.length + answer.length)
  let size = 0

  function remove(key: string): void {
    size -= sizeOf(key, cached.get(key)?.answer)
    cached.delete(key)
  }

  function add(key: string, answer: string, loadedAt: number): void {
    if (maxAgeMs === 0 || sizeOf(key, answer) > maxSize) return
    remove(key)
    cached.set(key, { answer, loadedAt })
    size += sizeOf(key, answer)
    for (const oldest of cached.keys()) {
      if (size <= maxSize) break
      remove(oldest)
    }
  }

  return {
    /** @throws whatever `load` throws, to all who wait for it; errors are never cached */
    get(key: string, load: () => Promise<string>): Promise<string> {
      const found = cached.get(key)
      if (found && now() - found.loadedAt < maxAgeMs) return Promise.resolve(found.answer)
      const loadedAt = now()
      const running = pending.get(key)
      if (running) return running
      const answer = load()
        .then((text) => {
          add(key, text, loadedAt)
          return text
        })
        .finally(() => pending.delete(key))
      pending.set(key, answer)
      return answer
    },
  }
}
