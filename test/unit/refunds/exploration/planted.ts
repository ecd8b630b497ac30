import { isOver, move, type RefundRow } from '../../../../src/refunds/lifecycle.ts'
import type { LockedRefunds } from '../../../../src/refunds/types.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import type { Options } from './machine.ts'

/** A gateway of which nobody knows whether it remembers request ids. */
export const NO_DEDUPES = { ...REFUND_SETTINGS, GATEWAY_REFUND_DEDUPES: false }

/** Changes the refunds of a case, as a defect of the rules would. */
const patch = (patchOf: (row: RefundRow) => Partial<RefundRow>) => (locked: LockedRefunds) => {
  for (const draft of locked.drafts) draft.now = { ...draft.now, ...patchOf(draft.now) }
}

const change = (
  from: RefundRow['status'],
  to: RefundRow['status'],
  facts: Partial<RefundRow> = {},
) => patch(({ status }) => (status === from ? { ...facts, status: to } : {}))

/** Sends whatever has not ended. */
function* chooseAny({ drafts, payments }: Pick<LockedRefunds, 'drafts' | 'payments'>) {
  const [payment] = payments
  for (const draft of drafts) if (payment && !isOver(draft)) yield { draft, payment }
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
  'a refund that waits for its approval is sent': {
    options: { needsApproval: true, plant: { choose: chooseAny } },
    rule: /is sent, and is awaiting_approval/,
    steps: 1,
  },
  'a hold is not seen': {
    options: { hasHolds: true, plant: { seesNoHold: true } },
    rule: /is sent, and is held/,
    steps: 4,
  },
  'the amount of the payment is not looked at': {
    options: {
      ...{ amounts: [30, 30], hasPortal: true },
      plant: {
        after({ payments }) {
          for (const one of payments) one.amount = '1000'
        },
      },
    },
    rule: /is sent beside 30 that have moved/,
    steps: 2,
  },
  'an unknown outcome is never given up': {
    options: {
      faults: 1,
      plant: { before: patch(({ status }) => (status === 'unknown' ? { sinceSentMs: 0 } : {})) },
    },
    rule: /no good news brings it to an end/,
    steps: 4,
  },
  'an interrupted attempt stays in progress': {
    options: {
      faults: 1,
      plant: {
        after: patch(({ status }) =>
          status === 'unknown' || status === 'needs_review' ? { status: 'sending' } : {},
        ),
      },
    },
    rule: /0 stays sending/,
    steps: 4,
  },
  'nobody may decide that it failed': {
    options: { plant: { undecidable: 'failed' } },
    rule: /nobody can end 0/,
    steps: 4,
  },
  'nothing is looked at once a refund has failed': {
    options: {
      faults: 1,
      plant: {
        before(locked) {
          if (locked.drafts.every(({ now }) => now.status !== 'failed')) return
          locked.notifications = []
          for (const one of locked.payments) one.refundedNow = '0'
        },
      },
    },
    rule: /0 failed, and has moved/,
    steps: 10,
  },
  'an acceptance counts as an inferred success': {
    options: { plant: { after: change('accepted', 'succeeded', { inferred: true }) } },
    rule: /0 succeeded, and has not moved/,
    steps: 6,
  },
  'what was accepted is cancelled': {
    options: {
      plant: {
        after({ drafts }) {
          for (const one of drafts)
            if (one.now.status === 'accepted') move(one, 'cancelled', { reason: '' })
        },
      },
    },
    rule: /no rule for cancelled of a refund that is accepted/,
    steps: 1,
  },
  'an acceptance counts as a failure': {
    options: { plant: { after: change('accepted', 'failed') } },
    rule: /0 fails without evidence/,
    steps: 1,
  },
  'an unknown outcome counts as a failure': {
    options: { faults: 1, plant: { after: change('unknown', 'failed') } },
    rule: /0 fails without evidence/,
    steps: 4,
  },
  'what waits for a person counts as a failure': {
    options: { faults: 1, plant: { after: change('needs_review', 'failed') } },
    rule: /0 fails without evidence/,
    steps: 4,
  },
  'every refusal is final': {
    options: {
      settings: { ...REFUND_SETTINGS, GATEWAY_REFUND_FINAL_CODES: ['24', '33'] },
    },
    rule: /0 fails without evidence/,
    steps: 4,
  },
  'a failure needs no confirmation': {
    options: {
      plant: {
        after: patch(({ status, failureCode }) =>
          status === 'accepted' && failureCode !== null ? { status: 'failed' } : {},
        ),
      },
    },
    rule: /0 fails without evidence/,
    steps: 5,
  },
}
