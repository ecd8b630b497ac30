import { describe, expect, it } from 'vitest'
import { explore } from './exploration/explore.ts'
import { makeMachine } from './exploration/machine.ts'
import { PLANTED } from './exploration/planted.ts'
import { WORLDS } from './exploration/worlds.ts'

const LIMIT = 30_000

describe('every order of events of a refund', () => {
  it.each(Object.entries(WORLDS))(
    'breaks no rule: %s',
    (_, { options, ...size }) => {
      const { broken, ...found } = explore(makeMachine(options), LIMIT)
      expect(broken).toBeUndefined()
      expect(found).toEqual(size)
    },
    300_000,
  )

  it.each(Object.entries(PLANTED))('shows by its shortest play that %s', (_, planted) => {
    const { broken } = explore(makeMachine(planted.options), LIMIT)
    expect(broken?.rule).toMatch(planted.rule)
    expect(broken?.play).toHaveLength(planted.steps)
  })
})
