import { afterAll, expect, it } from 'vitest'
import { explore } from '../unit/refunds/exploration/explore.ts'
import { makeMachine } from '../unit/refunds/exploration/machine.ts'
import { listUnreached } from '../unit/refunds/exploration/reached.ts'
import { REACHED } from '../unit/refunds/exploration/service.ts'
import { LARGE_WORLDS } from '../unit/refunds/exploration/worlds.ts'

const LIMIT = 2_000_000
const LEAST = 1_000_000

/** What no world reaches, and why. */
const OTHERS = 'whoever decides here never asked for the refund, and is never who decided last'
const UNREACHED: Record<string, string> = {
  'awaiting_approval: attempt_found':
    'the commits of its approval and of its attempt are both lost',
  'unknown: not_written_again':
    'three faults: no answer, then a lost lease and no byte of the repeat',
  'awaiting_approval: notified_unsent':
    'a lost row and a code that is open: two faults, and an approval',
  asked: OTHERS,
  same_person: OTHERS,
  too_early_alone: OTHERS,
  'needs_review: rule_missing': 'the rules would have a defect: a play that reaches it is broken',
  'refused: payment_not_refundable': 'where a payment is no longer listed there is one refund only',
  'refused: held': 'of holds only that of a refund is played, not those of payments and accounts',
  'refused: receiver_required': 'the payment was not made by QR',
  'refused: too_many_open_refunds': 'there are two refunds at most',
  'refused: refund_cap_exceeded': 'the key has no cap',
  'refused: invalid_request': 'all amounts have their currency’s decimals',
  'found: external_refund_unreadable': 'the portal’s notifications can all be read',
  'found: refund_rule_missing': 'as above, for a reason of the review',
}

const lines: string[] = []
let explored = 0

it.each(Object.entries(LARGE_WORLDS))(
  'no order of events breaks a rule: %s',
  (name, { options, ...size }) => {
    const began = process.cpuUsage()
    const { broken, ...found } = explore(makeMachine(options), LIMIT)
    const seconds = Math.round(process.cpuUsage(began).user / 1e6)
    const megabytes = Math.round(process.resourceUsage().maxRSS / 1_024)
    const { states, transitions, depth } = found
    lines.push([states, transitions, depth, `${seconds} s`, `${megabytes} MB`, name].join('\t'))
    explored += states
    expect(broken).toBeUndefined()
    expect(found).toEqual(size)
  },
  1_800_000,
)

it('explores a million states, and reaches every move, status and decision but those named', () => {
  expect(explored).toBeGreaterThanOrEqual(LEAST)
  expect(listUnreached(REACHED)).toEqual(Object.keys(UNREACHED))
})

afterAll(() => {
  console.info(['states\ttransitions\tdepth\ttime\tmost memory\tworld', ...lines].join('\n'))
})
