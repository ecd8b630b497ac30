import { createHash } from 'node:crypto'
import type { Guard } from '../guards/guard.ts'

/** Those whose file, test or claim contains the text. */
export function selectGuards(guards: readonly Guard[], text: string): Guard[] {
  return guards.filter(({ file, test, claim }) =>
    [file, test, claim].some((one) => one.includes(text)),
  )
}

/** Draws a tenth, in the order of the ledger: the same one each time for a commit, another one for the next commit. */
export function drawTenth(guards: readonly Guard[], commit: string): Guard[] {
  const rank = ({ file, text, mutation }: Guard) =>
    createHash('sha256').update([commit, file, text, mutation].join('\0')).digest('hex')
  const ranked = guards
    .map((guard) => ({ guard, rank: rank(guard) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
  const drawn = new Set(ranked.slice(0, Math.ceil(guards.length / 10)).map(({ guard }) => guard))
  return guards.filter((guard) => drawn.has(guard))
}
