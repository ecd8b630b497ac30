import type { RefundRow } from '../../../../src/refunds/lifecycle.ts'
import type { LockedRefunds } from '../../../../src/refunds/types.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import type { Options } from './machine.ts'

/** A gateway of which nobody knows whether it remembers request ids. */
export const NO_DEDUPES = { ...REFUND_SETTINGS, GATEWAY_REFUND_DEDUPES: false }

/** Changes the refunds of a case, as a defect of the rules would. */
const patch = (patchOf: (row: RefundRow) => Partial<RefundRow>) => (locked: LockedRefunds) => {
  for (const draft of locked.drafts) draft.now = { ...draft.now, ...patchOf(draft.now) }
}

/** A defect, the rule that its shortest play breaks, and the number of steps of that play. */
export type Planted = { options: Options; rule: RegExp; steps: number }

/** Defects of one rule each. */
export const PLANTED: Record<string, Planted> = {
  'an older answer is enough to send': {
    options: {
      amounts: [20, 20],
      plant: { before: patch(() => ({ requestedBeforeSnapshot: true })) },
    },
    rule: /is sent on an older answer/,
    steps: 5,
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
  'what is known of a request id is not looked up': {
    options: { faults: 1, losesRows: true, plant: { forgetsPrior: true } },
    rule: /is sent, and was notified/,
    steps: 9,
  },
  'growth that may be its own does not stop it': {
    options: {
      ...{ faults: 1, losesRows: true },
      plant: {
        after({ payments }) {
          for (const one of payments) one.refundedNow = '0'
        },
      },
    },
    rule: /is sent again although the answer shows it/,
    steps: 10,
  },
  'a notified failure does not stop it': {
    options: { faults: 1, plant: { after: patch(() => ({ failureCode: null })) } },
    rule: /is sent, and was notified/,
    steps: 5,
  },
  'notifications are not handled': {
    options: {
      faults: 1,
      plant: {
        before(locked) {
          locked.notifications = []
        },
      },
    },
    rule: /is sent, and was notified/,
    steps: 5,
  },
  'an unknown outcome counts as not sent': {
    options: {
      ...{ faults: 1, settings: NO_DEDUPES },
      plant: {
        after: patch(({ status }) => (status === 'unknown' ? { status: 'pending' } : {})),
      },
    },
    rule: /is sent, and was notified/,
    steps: 5,
  },
  'what the first answer showed counts as growth': {
    options: {
      ...{ paid: 80, amounts: [30, 30], hasPortal: true, early: ['shown'] },
      plant: {
        before({ payments }) {
          for (const one of payments) one.refundedAtFirst = '0'
        },
      },
    },
    rule: /60 are matched, and 30 have moved/,
    steps: 4,
  },
  'a payment that is not listed may be refunded': {
    options: {
      ...{ faults: 1, hasOddAnswers: true },
      plant: {
        before({ payments }) {
          for (const one of payments) one.listed = true
        },
      },
    },
    rule: /is sent, and is not listed/,
    steps: 3,
  },
}
