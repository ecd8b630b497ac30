import { makeRandom } from '../../../src/sandbox/random.ts'

/** Reproducible random choices. */
export type Dice = {
  /** An integer from `from` to `to`, both inclusive. */
  between(from: number, to: number): number
  chance(probability: number): boolean
  oneOf<T>(items: readonly [T, ...T[]]): T
  shuffle<T>(items: readonly T[]): T[]
}

/** @param stream separates the choices of one part of a run from those of another with the same seed */
export function makeDice(seed: number, stream: number): Dice {
  const random = makeRandom(
    (Math.imul(seed, 0x9e37_79b1) ^ Math.imul(stream + 1, 0x85eb_ca6b)) >>> 0,
  )
  const between = (from: number, to: number) => from + Math.floor(random() * (to - from + 1))
  return {
    between,
    chance: (probability) => random() < probability,
    oneOf: (items) => items[between(0, items.length - 1)] ?? items[0],
    shuffle(items) {
      const left = [...items]
      return items.flatMap(() => left.splice(between(0, left.length - 1), 1))
    },
  }
}
