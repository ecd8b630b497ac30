import { TEXTS } from '../texts/en.ts'

/** Names a kind of discrepancy in words; one of another release keeps its own name. */
export function nameKind(kind: string): string {
  const known = Object.entries(TEXTS.discrepancies.kinds).find(([name]) => name === kind)
  return known?.[1] ?? TEXTS.states.unknown(kind)
}
