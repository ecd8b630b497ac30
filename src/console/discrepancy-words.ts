import { TEXTS } from './texts/en.ts'

const { kinds, sources } = TEXTS.discrepancies

/** What a kind of discrepancy means, in words; one of a later release is named as it is stored. */
export function nameKind(kind: string): string {
  return Object.entries(kinds).find(([known]) => known === kind)?.[1] ?? kind
}

/** Who or what one side of a discrepancy comes from. */
export function nameSource(source: string): string {
  return Object.entries(sources).find(([known]) => known === source)?.[1] ?? source
}
