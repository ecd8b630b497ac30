import type { Hold } from '../../nightly/audit/ledgers.ts'
import type { Lies } from './lies.ts'
import {
  findRefund,
  K3,
  MOVED,
  makeAnswer,
  P1,
  R1,
  R2,
  R3,
  setRefundable,
  setState,
  type Watched,
} from './truth.ts'

const MINUTE = 60_000

/** The money of R1 came back, and the amount is released. */
export function takeBack(ledgers: Watched, people: number, at = 0): void {
  const { stored, moved, witnessed } = ledgers
  Object.assign(findRefund(ledgers, R1), { status: 'returned', released: true, matched: false })
  moved.movements = moved.movements.filter(({ requestId }) => requestId !== R1)
  witnessed.saidReturned = new Map(people > 0 ? [[R1, { people, at }]] : [])
  witnessed.answers = witnessed.answers.map((one) => makeAnswer(one.at, '10'))
  for (const one of stored.payments) one.refundedAmount = '10'
  setRefundable(ledgers, '90')
}

/** R2 moved all the same, which nobody has room for. */
export function moveRefused(ledgers: Watched, isPending = false): void {
  ledgers.moved.movements.push({ requestId: R2, paymentId: P1, amount: '20', ...MOVED, isPending })
  setRefundable(ledgers, '0')
}

/** The money of R1 never moved. */
export function neverMove({ moved }: Watched): void {
  moved.movements = moved.movements.filter(({ requestId }) => requestId !== R1)
}

/** The bytes of R3 left, as was recorded; nobody cancelled it. */
function sendUnsent({ stored, moved, witnessed }: Watched): void {
  moved.sends = new Map([...moved.sends, [R3, { times: 1, lost: 0 }]])
  stored.attempts.push({ refundId: R3, paymentId: P1, at: 50, outcome: 'answered' })
  witnessed.cancelled = new Set()
  witnessed.waitedMs = new Map()
}

const holdOnly = (hold: Hold) => (ledgers: Watched) => {
  ledgers.witnessed.holds = [hold]
}

function refuse(ledgers: Watched, code: string, by: 'answer' | 'notification', toldAs = code) {
  findRefund(ledgers, R2).failure = code
  ledgers.witnessed.failures = [{ requestId: R2, code: toldAs, by, at: 0, answers: 1 }]
}

/** What the service could get wrong between the steps of a model. */
export const STEP_LIES: Lies<Watched> = {
  'a refund moves money once': {
    'it moved, and is about to move again': ({ moved }) =>
      void moved.movements.push({
        ...{ requestId: R1, paymentId: P1, amount: '30' },
        ...{ ...MOVED, isPending: true },
      }),
  },
  'a failed refund did not move money': {
    'one that was refused moved': (ledgers) => moveRefused(ledgers),
    'one that was refused is about to move': (ledgers) => moveRefused(ledgers, true),
    'a discrepancy does not excuse it while anything may happen': (ledgers) => {
      moveRefused(ledgers)
      findRefund(ledgers, R2).disputed = true
    },
    'a person was wrong, and no discrepancy says so at rest': (ledgers) => {
      moveRefused(ledgers)
      ledgers.witnessed.misjudged = new Set([R2])
      ledgers.phase = 'rest'
    },
    'a discrepancy is not enough in the end': (ledgers) => {
      moveRefused(ledgers)
      findRefund(ledgers, R2).disputed = true
      ledgers.phase = 'settled'
    },
  },
  'a succeeded refund moved money, unless somebody was wrong': {
    'one that succeeded never moved': neverMove,
    'one that succeeded is still about to at rest': (ledgers) => {
      ledgers.phase = 'rest'
      for (const one of ledgers.moved.movements) one.isPending = one.requestId === R1
    },
    'one that was inferred did not move, and no discrepancy says so at rest': (ledgers) => {
      neverMove(ledgers)
      ledgers.phase = 'rest'
      Object.assign(findRefund(ledgers, R1), { inferred: true, matched: false })
    },
  },
  'what moved is not released': {
    'one person released what moved': (ledgers) => {
      const { movements } = ledgers.moved
      takeBack(ledgers, 1)
      ledgers.moved.movements = movements
      setRefundable(ledgers, '60')
    },
    'two people did, and it was never righted': (ledgers) => {
      const { movements } = ledgers.moved
      takeBack(ledgers, 2)
      ledgers.moved.movements = movements
      ledgers.phase = 'settled'
    },
  },
  'what came back is released by two people, or answers that are apart': {
    'two answers of the same minute released it': (ledgers) => {
      takeBack(ledgers, 1)
      ledgers.witnessed.answers = [0, 0, MINUTE].map((at) => makeAnswer(at, '10'))
    },
    'the answers were asked for before a person said so': (ledgers) =>
      takeBack(ledgers, 1, 2 * MINUTE),
    'nobody said so': (ledgers) => takeBack(ledgers, 0),
  },
  'only what was notified, or a person knows, is matched': {
    'what was inferred is matched': (ledgers) => {
      findRefund(ledgers, R1).inferred = true
      setRefundable(ledgers, '0')
    },
    'what waits for a person is matched': (ledgers) => {
      Object.assign(findRefund(ledgers, R3), { status: 'needs_review', matched: true })
    },
  },
  'a success that nobody told is marked as inferred': {
    'nobody told it': (ledgers) => {
      findRefund(ledgers, R1).matched = false
      ledgers.witnessed.successes = new Set()
    },
  },
  'a failure that the gateway told is believed later': {
    'it failed after eight minutes': ({ witnessed }) => {
      witnessed.failedAt = new Map([[R2, 8 * MINUTE]])
    },
    'it was told three minutes later': ({ witnessed }) => {
      witnessed.failures = witnessed.failures.map((one) => ({ ...one, at: 3 * MINUTE, answers: 0 }))
    },
  },
  'a failure that the gateway told is confirmed by its answers': {
    'one answer came after it': ({ witnessed }) => {
      witnessed.answers = [makeAnswer(0), makeAnswer(11 * MINUTE)]
    },
    'two answers came within a second': ({ witnessed }) => {
      witnessed.answers = [0, 10.9 * MINUTE, 11 * MINUTE].map((at) => makeAnswer(at))
    },
    'an answer between them shows its growth': ({ witnessed }) => {
      const [first, second, third] = witnessed.answers
      if (first && second && third) {
        witnessed.answers = [first, second, makeAnswer(5 * MINUTE, '70'), third]
      }
    },
  },
  'only a final code fails a refund': {
    'nobody told the code': (ledgers) => refuse(ledgers, '1', 'answer', '37'),
    'the code of an answer is open': (ledgers) => refuse(ledgers, '1', 'answer'),
    'the code of a notification is open': (ledgers) => refuse(ledgers, '24', 'notification'),
  },
  'only a person frees a refund made elsewhere': Object.fromEntries(
    ['released', 'never_happened', 'part_of_first_sight'].map((state) => [
      `it is ${state}`,
      (ledgers: Watched) => setState(ledgers, state),
    ]),
  ),
  'what a person said never happened stays so': {
    'it is reserved again': (ledgers) => {
      setState(ledgers, 'reserved')
      ledgers.witnessed.neverHappened = new Set(['A/Q1'])
    },
  },
  'an open refund is due': {
    'nothing asks about an unknown one': (ledgers) => {
      findRefund(ledgers, R3).status = 'unknown'
      setRefundable(ledgers, '50')
    },
    'nothing sends a pending one': (ledgers) => {
      Object.assign(findRefund(ledgers, R3), { status: 'pending' })
    },
    'nothing looks for evidence in review': (ledgers) => {
      Object.assign(findRefund(ledgers, R3), { status: 'needs_review', review: 'no_evidence' })
    },
  },
  'no more is matched than the gateway ever showed': {
    'it never showed as much': ({ witnessed }) => {
      witnessed.highest = new Map([[P1, '39.9999']])
    },
    'a part of it was there at first': ({ stored }) => {
      for (const one of stored.payments) one.atFirst = '1'
    },
  },
  'growth that nothing explains is a discrepancy': {
    'a little more was refunded': (ledgers) => {
      for (const one of ledgers.stored.payments) one.refundedAmount = '40.0001'
      ledgers.phase = 'rest'
    },
    'a portal refund is not matched': (ledgers) => {
      ledgers.phase = 'rest'
      setState(ledgers, 'reserved')
    },
  },
  'what was cancelled was never sent': {
    'it was sent, as was recorded': (ledgers) => {
      sendUnsent(ledgers)
      ledgers.stored.refunds = ledgers.stored.refunds.filter(({ id }) => id !== R3)
      ledgers.witnessed.cancelled = new Set([R3])
    },
  },
  'what was cancelled does not move': {
    'it moved': (ledgers) => {
      ledgers.stored.refunds = ledgers.stored.refunds.filter(({ id }) => id !== R3)
      ledgers.moved.movements.push({
        ...{ requestId: R3, paymentId: P1, amount: '10', ...MOVED },
        ...{ isPending: true },
      })
    },
  },
  'what failed as unsent was never sent': Object.fromEntries(
    ['declined', 'approval_expired', 'not_sent_in_time', 'exceeds_refundable'].map((failure) => [
      `it was ${failure}`,
      (ledgers: Watched) => {
        sendUnsent(ledgers)
        findRefund(ledgers, R3).failure = failure
      },
    ]),
  ),
  'a refund expires after its time': Object.fromEntries(
    ['approval_expired', 'not_sent_in_time'].map((failure) => [
      `it was ${failure}`,
      (ledgers: Watched) => {
        findRefund(ledgers, R3).failure = failure
      },
    ]),
  ),
  'nothing is sent while it is held': {
    'the account is held': holdOnly({ target: 'merchant', id: 'A', from: 99 }),
    'the payment is held': holdOnly({ target: 'payment', id: P1, from: 99, until: 101 }),
    'the refund is held': holdOnly({ target: 'refund', id: R1, from: 99 }),
  },
  'nothing is sent again too late': {
    'a refund was': ({ witnessed }) => {
      witnessed.repeatedLate = new Set([R1])
    },
  },
  'a step changes nothing of another account': {
    'a refund of another account changed': ({ witnessed }) => {
      witnessed.changedByOther = ['refunds']
    },
  },
  'money moves only if it was requested, or at the portal': {
    'the key is known, and not the id': ({ acknowledged }) => {
      acknowledged.asked = acknowledged.asked.filter(({ key }) => key === K3)
    },
  },
}
