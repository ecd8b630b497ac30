import { describe, expect, it } from 'vitest'
import type { RefundRow } from '../../../src/refunds/lifecycle.ts'
import type { LockedRefunds } from '../../../src/refunds/types.ts'
import { explore } from './exploration/explore.ts'
import { makeMachine, type Options, WORLDS } from './exploration/machine.ts'

const LIMIT = 30_000

/** Changes the refunds of a case, as a defect of the rules would. */
const patch = (patchOf: (row: RefundRow) => Partial<RefundRow>) => (locked: LockedRefunds) => {
  for (const draft of locked.drafts) draft.now = { ...draft.now, ...patchOf(draft.now) }
}

/** Defects, and the shortest play that shows each: the rule that it breaks, and the number of its steps. */
const PLANTED: Record<string, { options: Options; rule: RegExp; steps: number }> = {
  'an older answer is enough to send': {
    options: {
      amounts: [20, 20],
      plant: { before: patch(() => ({ requestedBeforeSnapshot: true })) },
    },
    rule: /is sent on an older answer/,
    steps: 3,
  },
  'what is not approved is sent': {
    options: {
      ...{ hasPeople: true, needsApproval: true },
      plant: {
        after: patch(({ status }) => (status === 'awaiting_approval' ? { status: 'pending' } : {})),
      },
    },
    rule: /is sent, and not approved/,
    steps: 1,
  },
  'an acceptance counts as growth': {
    options: { plant: { after: patch(({ status }) => ({ matched: status === 'accepted' })) } },
    rule: /are matched, and 0 have moved/,
    steps: 5,
  },
  'inference frees money': {
    options: {
      plant: { after: patch(({ inferred, matched }) => ({ matched: matched || inferred })) },
    },
    rule: /can be refunded, and 60 have moved or may/,
    steps: 9,
  },
  'a refund made elsewhere reserves nothing': {
    options: {
      ...{ amounts: [30, 30], hasPortal: true },
      plant: {
        after({ external }) {
          for (const one of external) one.now = { ...one.now, outcome: 'released' }
        },
      },
    },
    rule: /50 can be refunded, and 30 have moved or may/,
    steps: 3,
  },
  'the gateway forgets what it has seen': {
    options: { faults: 1, forgets: true },
    rule: /0 has moved 2 times/,
    steps: 10,
  },
}

describe('every order of events of a refund', () => {
  it.each(Object.entries(WORLDS))(
    'breaks no rule: %s',
    (_, { options, states }) => {
      const { broken, ...size } = explore(makeMachine(options), LIMIT)
      expect(broken).toBeUndefined()
      expect(size.states).toBe(states)
    },
    300_000,
  )

  it.each(Object.entries(PLANTED))('shows by its shortest play that %s', (_, planted) => {
    const { broken } = explore(makeMachine(planted.options), LIMIT)
    expect(broken?.rule).toMatch(planted.rule)
    expect(broken?.play).toHaveLength(planted.steps)
  })
})
