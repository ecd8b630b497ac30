import { Big } from 'big.js'
import { DomainError } from '../errors.ts'
import {
  isInferredUnmatched,
  mayBeItsOwnGrowth,
  measureCounted,
  measureUnexplained,
} from './measure-unmatched.ts'
import type { LockedPayment, RefundDraft, RefundRow } from './types.ts'

/** The refunds and payments of a transaction, locked. */
type Locked = { payments: readonly LockedPayment[]; drafts: readonly RefundDraft[] }

/**
 * Why a refund that was never sent from here is left to a person instead of failing: a row of it that was lost may have
 * been sent. Undefined when nothing speaks for that. The caller holds the rows.
 */
export function explainMayHaveMoved(locked: Locked, row: RefundRow): string | undefined {
  const payment = findPayment(locked, row)
  if (!payment?.listed) return 'the gateway does not list its payment any more, or not readably'
  const growth = findOwnGrowth(payment, locked, row)
  return growth && `${describeGrowth(growth, payment)}, and may be this refund`
}

/**
 * Refuses to end a refund as one that was not sent while its payment has grown by its amount or more, without a known
 * refund that explains it. The caller holds the rows.
 * @throws DomainError `growth_may_be_its_own`, with what to do first
 */
export function refuseOwnGrowth(
  locked: Locked,
  row: RefundRow,
  done: 'cancelled' | 'declined',
): void {
  const payment = findPayment(locked, row)
  const growth = payment && findOwnGrowth(payment, locked, row)
  if (!payment || growth === undefined) return
  const detail = `Refund ${row.refundId} cannot be ${done}: ${describeGrowth(growth, payment)}, and may be this refund. ${listSteps(payment, locked)}, then repeat the request`
  throw new DomainError('growth_may_be_its_own', detail)
}

function findPayment({ payments }: Locked, { paymentId }: RefundRow): LockedPayment | undefined {
  return payments.find((one) => one.paymentId === paymentId)
}

/** The growth that no known refund explains, a decimal string, if it is the amount of the refund or more. */
function findOwnGrowth(
  payment: LockedPayment,
  { drafts }: Locked,
  row: RefundRow,
): string | undefined {
  const unmatched = measureCounted(payment, drafts)
  return mayBeItsOwnGrowth(unmatched, row) ? unmatched : undefined
}

function describeGrowth(
  growth: string,
  { paymentId, refundedNow, countedRefunded }: LockedPayment,
): string {
  return `${growth} of the refunded amount ${countedRefunded ?? refundedNow} of payment ${paymentId} are not explained by a known refund`
}

/**
 * What explains the growth: the refunds that were inferred from it, and what is left beside them. Growth that the newest
 * answer does not show is no discrepancy, and only another answer can tell.
 */
function listSteps(payment: LockedPayment, { drafts }: Locked): string {
  const inferred = drafts.flatMap(({ now }) =>
    now.paymentId === payment.paymentId && isInferredUnmatched(now) ? [now.refundId] : [],
  )
  const steps = inferred.map(
    (id) =>
      `confirm or deny refund ${id}, which is only inferred, with POST /v1/refunds/${id}/resolution`,
  )
  if (payment.countedRefunded !== null) {
    steps.push(
      `wait for another answer of the gateway: the newest one shows ${payment.refundedNow}, which counts once a second one confirms it`,
    )
  }
  if (new Big(measureUnexplained(payment, drafts)).gt(0)) {
    steps.push(
      'resolve the discrepancy `unexplained_growth` of the payment with POST /v1/discrepancies/{id}/resolution',
    )
  }
  return `First ${steps.join('; ')}`
}
