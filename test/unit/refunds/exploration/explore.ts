/** A step that may be taken in a state, and where it leads. */
export type Step<S> = { name: string; next: () => S }

/** A machine whose every play is tried. */
export type Machine<S> = {
  begin: S
  /** Equal for states that cannot be told apart by what may follow. */
  key(state: S): number
  steps(state: S): Iterable<Step<S>>
  /** What is wrong with a state that was reached; undefined for nothing. */
  check(state: S): string | undefined
}

/** What was found: how much there is, or the shortest play that breaks a rule. */
export type Explored = {
  states: number
  transitions: number
  /** Steps of the longest of the shortest plays. */
  depth: number
  broken?: { rule: string; play: string[] }
}

/**
 * A hash of 53 bits: of two million states two share one in one of four thousand runs, and a state is kept in 50 bytes.
 * (cyrb53 by bryc, public domain.)
 */
export function hash(text: string): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    a = Math.imul(a ^ code, 2_654_435_761)
    b = Math.imul(b ^ code, 1_597_334_677)
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909)
  return 4_294_967_296 * (2_097_151 & b) + (a >>> 0)
}

/** A rule that a step has broken. */
export class Broken extends Error {}

/**
 * Plays every order of steps, breadth first: what breaks a rule is found by a play than which none is shorter.
 * @param limit of states; one that is reached is an error, because what lies behind it was not looked at
 */
export function explore<S>(machine: Machine<S>, limit: number): Explored {
  const known = new Set([machine.key(machine.begin)])
  const trail: { from: number; name: string }[] = [{ from: -1, name: '' }]
  let level: { state: S; at: number }[] = [{ state: machine.begin, at: 0 }]
  let transitions = 0
  let depth = 0
  const stop = (rule: string, at: number, name?: string): Explored => {
    const play = name === undefined ? [] : [name]
    for (let one = trail[at]; one && one.from >= 0; one = trail[one.from]) play.unshift(one.name)
    return { states: known.size, transitions, depth, broken: { rule, play } }
  }
  for (; level.length > 0; depth += 1) {
    const below: typeof level = []
    for (const { state, at } of level) {
      for (const { name, next } of machine.steps(state)) {
        transitions += 1
        let reached: S
        let key: number
        try {
          reached = next()
          key = machine.key(reached)
          if (known.has(key)) continue
          const rule = machine.check(reached)
          if (rule !== undefined) return stop(rule, at, name)
        } catch (error) {
          if (error instanceof Broken) return stop(error.message, at, name)
          throw new Error(stop('', at, name).broken?.play.join('\n'), { cause: error })
        }
        if (known.size >= limit) throw new Error(`more than ${limit} states`)
        known.add(key)
        below.push({ state: reached, at: trail.length })
        trail.push({ from: at, name })
      }
    }
    level = below
  }
  return { states: known.size, transitions, depth: depth - 1 }
}
