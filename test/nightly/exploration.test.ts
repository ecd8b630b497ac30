import { expect, it } from 'vitest'
import { explore } from '../unit/refunds/exploration/explore.ts'
import { makeMachine, type Options } from '../unit/refunds/exploration/machine.ts'

/** Worlds that are too large for every run, and how many states each has. */
const WORLDS: Record<string, { options: Options; states: number }> = {
  'a row that is lost, and the same key again': {
    options: { faults: 1, losesRows: true },
    states: 10_235,
  },
}

it.each(Object.entries(WORLDS))(
  'no order of events breaks a rule: %s',
  (_, { options, states }) => {
    const { broken, ...size } = explore(makeMachine(options), 2_000_000)
    expect(broken).toBeUndefined()
    expect(size.states).toBe(states)
  },
  900_000,
)
