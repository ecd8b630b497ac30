import { countKnownSends, isTaken } from './always.ts'
import { FINAL_CODES } from './evidence.ts'
import {
  type Hold,
  type Ledgers,
  type QueryAnswer,
  type StoredAttempt,
  type StoredPayment,
  type StoredRefund,
  sumOf,
  units,
  type Witnessed,
} from './ledgers.ts'
import { ofRefundsInSteps, ofSteps, type Rule } from './rules.ts'

/** Reasons to fail a refund of which nothing was sent, with how long it has to wait before (ms). */
const UNSENT: Readonly<Record<string, number>> = {
  cancelled: 0,
  declined: 0,
  approval_expired: 3 * 86_400_000,
  not_sent_in_time: 7 * 86_400_000,
  approval_mismatch: 0,
  exceeds_refundable: 0,
  payment_not_refundable: 0,
}
/** How long nothing that the gateway told is believed. */
const CONFIRM_MS = 600_000
/** For the time that passes by itself while a test runs (ms). */
const SLACK_MS = 60_000

/** What holds after every step, although the gateway and people may have said what is not true. */
export const STEP_BY_STEP: readonly Rule[] = [
  ofRefundsInSteps(
    'lost',
    'a succeeded refund moved money, unless somebody was wrong',
    ({ id, status, inferred, disputed }, witnessed, ledgers) => {
      if (status !== 'succeeded' || hasMoved(ledgers, id)) return false
      // What was only inferred may be wrong, until everything is at rest.
      if (ledgers.phase === 'settled') return true
      if (witnessed.misjudged.has(id)) return false
      return ledgers.phase === 'rest' ? !disputed : !inferred && !witnessed.misreported.has(id)
    },
  ),
  // One person's word does not release what came back; answers may release it for another one of its amount that did.
  ofRefundsInSteps('doubled', 'what moved is not released', (one, witnessed, ledgers) => {
    if (!one.released || !isTaken(ledgers, one.id)) return false
    if (ledgers.phase === 'settled') return true
    return !isReleasedByPeople(witnessed, one.id) && !isReleasedForAnother(ledgers, one)
  }),
  ofRefundsInSteps(
    'doubled',
    'what came back is released by two people, or answers that are apart',
    ({ id, released }, witnessed) => {
      if (!released || isReleasedByPeople(witnessed, id)) return false
      const { at } = witnessed.saidReturned.get(id) ?? { at: Number.POSITIVE_INFINITY }
      const times = witnessed.answers.map((answer) => answer.at).filter((one) => one >= at)
      return !areApart(times[0], times.at(-1))
    },
  ),
  ofRefundsInSteps(
    'doubled',
    'only what was notified, or a person knows, is matched',
    ({ id, inferred, matched }, { successes }) => matched && (inferred || !successes.has(id)),
  ),
  ofRefundsInSteps(
    'lost',
    'a success that nobody told is marked as inferred',
    ({ id, status, inferred }, { successes }) =>
      status === 'succeeded' && !inferred && !successes.has(id),
  ),
  ofRefundsInSteps(
    'lost',
    'a failure that the gateway told is believed later',
    (one, { failures, failedAt }) => {
      const told = failures.filter(({ requestId }) => requestId === one.id).map(({ at }) => at)
      return isFailedByGateway(one) && !areApart(Math.min(...told), failedAt.get(one.id))
    },
  ),
  ofRefundsInSteps(
    'lost',
    'a failure that the gateway told is confirmed by its answers',
    (one, witnessed) => isFailedByGateway(one) && !isConfirmed(witnessed, one),
  ),
  ofRefundsInSteps('lost', 'only a final code fails a refund', (one, { failures }) => {
    const told = failures.filter(
      ({ requestId, code }) => requestId === one.id && code === one.failure,
    )
    return isFailedByGateway(one) && !told.some(({ by, code }) => FINAL_CODES[by].includes(code))
  }),
  ofSteps(
    'doubled',
    'only a person frees a refund made elsewhere',
    ({ neverHappened, firstSight }, { stored }) =>
      stored.external
        .filter(
          ({ requestId, state }) =>
            state === 'released' ||
            (state === 'never_happened' && !neverHappened.has(requestId)) ||
            (state === 'part_of_first_sight' && !firstSight.has(requestId)),
        )
        .map(({ requestId }) => requestId),
  ),
  ofSteps(
    'disordered',
    'what a person said never happened stays so',
    ({ neverHappened }, { stored }) =>
      stored.external
        .filter(
          ({ requestId, state }) => neverHappened.has(requestId) && state !== 'never_happened',
        )
        .map(({ requestId }) => requestId),
  ),
  ofRefundsInSteps(
    'stuck',
    'an open refund is due',
    ({ status, review, due }) =>
      !due &&
      (['pending', 'sending', 'accepted', 'unknown'].includes(status) ||
        (status === 'needs_review' && review === 'no_evidence')),
  ),
  ofSteps('doubled', 'no more is matched than the gateway ever showed', ({ highest }, { stored }) =>
    stored.payments
      .filter((payment) => {
        const most = units(highest.get(payment.id) ?? '0')
        return most < units(payment.atFirst) + sumMatched(payment, stored)
      })
      .map(({ id }) => id),
  ),
  ofSteps('lost', 'growth that nothing explains is a discrepancy', (_, { stored, phase }) =>
    stored.payments
      .filter((payment) => phase !== 'open' && sumUnexplained(payment, stored) > 0n)
      .filter(({ unexplained }) => !unexplained)
      .map(({ id }) => id),
  ),
  ofSteps('doubled', 'what was cancelled was never sent', ({ cancelled }, ledgers) =>
    [...cancelled].filter((id) => countKnownSends(ledgers, id) > 0),
  ),
  ofSteps('doubled', 'what was cancelled does not move', ({ cancelled }, ledgers) =>
    [...cancelled].filter((id) => isTaken(ledgers, id) && !ledgers.moved.sends.get(id)?.lost),
  ),
  ofRefundsInSteps(
    'doubled',
    'what failed as unsent was never sent',
    ({ id, failure, status }, _, ledgers) =>
      status === 'failed' && (failure ?? '') in UNSENT && countKnownSends(ledgers, id) > 0,
  ),
  ofRefundsInSteps(
    'disordered',
    'a refund expires after its time',
    ({ id, status, failure }, { waitedMs }) => {
      const waited = waitedMs.get(id) ?? Number.POSITIVE_INFINITY
      return status === 'failed' && waited + SLACK_MS < (UNSENT[failure ?? ''] ?? 0)
    },
  ),
  ofSteps('doubled', 'nothing is sent while it is held', ({ holds }, { stored }) =>
    stored.attempts
      .filter((attempt) => holds.some((hold) => forbids(hold, attempt)))
      .map(({ refundId }) => refundId),
  ),
  ofSteps('doubled', 'nothing is sent again too late', ({ repeatedLate }) => [...repeatedLate]),
  ofSteps('leaked', 'a step changes nothing of another account', ({ changedByOther }) => [
    ...changedByOther,
  ]),
]

/** Whether two moments are known, and apart by the time that nothing is believed before. */
function areApart(from: number | undefined, to: number | undefined): boolean {
  return from !== undefined && to !== undefined && to - from >= CONFIRM_MS - SLACK_MS
}

function hasMoved({ moved, phase }: Ledgers, id: string): boolean {
  return moved.movements.some(
    ({ requestId, isPending }) => requestId === id && (phase === 'open' || !isPending),
  )
}

function isFailedByGateway({ status, failureSource }: StoredRefund): boolean {
  return status === 'failed' && failureSource === 'gateway'
}

/** Whether two answers from after a failure was told, apart, and all between them, show no growth of the refund. */
function isConfirmed({ failures, answers, baselines }: Witnessed, one: StoredRefund): boolean {
  const { id, paymentId, amount } = one
  const told = failures.filter(({ requestId }) => requestId === id)
  const later = answers.slice(Math.min(...told.map((failure) => failure.answers)))
  const shows = ({ refunded }: QueryAnswer) =>
    units(refunded.get(paymentId) ?? '0') - units(baselines.get(id) ?? '0')
  let since: number | undefined
  for (const answer of later.filter(({ refunded }) => refunded.has(paymentId))) {
    if (shows(answer) >= units(amount)) since = undefined
    else if (areApart(since, answer.at)) return true
    else since ??= answer.at
  }
  return false
}

function isReleasedByPeople({ saidReturned }: Witnessed, id: string): boolean {
  return (saidReturned.get(id)?.people ?? 0) > 1
}

/** Whether another refund of the amount came back, and waits for its release: nobody can tell which of the two it was. */
function isReleasedForAnother(ledgers: Ledgers, { paymentId, amount }: StoredRefund): boolean {
  return ledgers.stored.refunds.some(
    (one) =>
      one.paymentId === paymentId &&
      units(one.amount) === units(amount) &&
      one.status === 'returned' &&
      !one.released &&
      !isTaken(ledgers, one.id),
  )
}

function forbids(
  { target, id, from, until = Number.POSITIVE_INFINITY }: Hold,
  { refundId, paymentId, at }: StoredAttempt,
): boolean {
  const covers = target === 'merchant' || id === (target === 'payment' ? paymentId : refundId)
  return covers && at > from && at < until
}

function sumMatched({ id }: StoredPayment, { refunds, external }: Ledgers['stored']): bigint {
  return sumOf(
    id,
    refunds.filter(({ matched }) => matched),
    external.filter(({ state }) => state === 'matched'),
  )
}

/** What the newest answer shows beyond what is matched, and what was inferred from it. */
function sumUnexplained(payment: StoredPayment, stored: Ledgers['stored']): bigint {
  const inferred = stored.refunds.filter((one) => one.status === 'succeeded' && one.inferred)
  const explained =
    units(payment.atFirst) + sumMatched(payment, stored) + sumOf(payment.id, inferred)
  return units(payment.refundedAmount) - explained
}
