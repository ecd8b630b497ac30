/** Answers kept for a moment; equal questions at the same moment are asked once, also when none is kept. */
export type CardCache = {
  /**
   * @param key everything the answer depends on
   * @throws whatever `ask` throws, to all that wait for it; that is never kept
   */
  get(key: string, ask: () => Promise<string>): Promise<string>
}

/** The most characters kept: the oldest answers make room. */
const MAX_SIZE = 16 * 1024 * 1024

/**
 * @param maxAgeMs how old an answer may be, counted from when its question was sent; 0 keeps none
 * @param now milliseconds on a clock that only goes forward
 */
export function createCardCache(
  maxAgeMs: number,
  { maxSize = MAX_SIZE, now = () => performance.now() } = {},
): CardCache {
  const kept = new Map<string, { answer: string; askedAt: number }>()
  const asking = new Map<string, Promise<string>>()
  let size = 0

  function drop(key: string): void {
    size -= measure(key, kept.get(key)?.answer)
    kept.delete(key)
  }

  function keep(key: string, answer: string, askedAt: number): void {
    if (maxAgeMs === 0 || measure(key, answer) > maxSize) return
    drop(key)
    kept.set(key, { answer, askedAt })
    size += measure(key, answer)
    for (const oldest of kept.keys()) {
      if (size <= maxSize) break
      drop(oldest)
    }
  }

  return {
    get(key, ask) {
      const found = kept.get(key)
      if (found && now() - found.askedAt < maxAgeMs) return Promise.resolve(found.answer)
      const askedAt = now()
      const running = asking.get(key)
      if (running) return running
      const answer = ask()
        .then((text) => {
          keep(key, text, askedAt)
          return text
        })
        .finally(() => asking.delete(key))
      asking.set(key, answer)
      return answer
    },
  }
}

function measure(key: string, answer: string | undefined): number {
  return answer === undefined ? 0 : key.length + answer.length
}
