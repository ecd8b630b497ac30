import { formatTransactionKey } from '../../db/transaction-key.ts'
import { nameAnchor, storyPath } from '../paths.ts'
import type { Hit } from './find-hits.ts'

/**
 * Chooses where a search leads: to the only result, or to the only transaction that has exactly this id, or to which
 * everything with exactly this id belongs.
 * @returns the path of the story; undefined when a person has to choose
 */
export function chooseTarget(shown: readonly Hit[]): string | undefined {
  const exact = shown.filter(({ isExact }) => isExact)
  const candidates = exact.length > 0 ? exact : shown
  const [first] = candidates
  if (!first) return undefined
  if (candidates.length === 1) return pathOf(first)
  const transactions = new Set(candidates.map(formatTransactionKey))
  return exact.length > 0 && transactions.size === 1 ? storyPath(first) : undefined
}

/** The place of an object on the story of its transaction. */
export function pathOf(hit: Hit): string {
  return hit.type === 'transaction' ? storyPath(hit) : storyPath(hit, nameAnchor(hit.type, hit.id))
}
