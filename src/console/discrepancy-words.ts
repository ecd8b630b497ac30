import { TEXTS } from './texts/en.ts'

const { kinds, sources, side } = TEXTS.discrepancies

/** What a kind of discrepancy means, in words; one of a later release is named as it is stored. */
export function nameKind(kind: string): string {
  return Object.entries(kinds).find(([known]) => known === kind)?.[1] ?? kind
}

/** One side of a discrepancy: who or what it comes from, in words, and what that is. */
export function describeSide({ source, says: words }: { source: string; says: string }): string {
  return side(nameSource(source), words)
}

/** Who or what a side comes from, in words; one of a later release is named as it is stored. */
export function nameSource(source: string): string {
  return Object.entries(sources).find(([name]) => name === source)?.[1] ?? source
}
