import { addAmounts } from '../../../../src/money.ts'
import type { Ledgers } from './ledgers.ts'

/** Evidence about refunds that the service certainly has, and payments of which it certainly lacks some. */
export type Evidence = {
  /** Refunds whose notification was acknowledged and cannot be lost. */
  told: ReadonlySet<string>
  /** Refunds whose money moved. */
  moved: ReadonlySet<string>
  /** Payments of which money moved without such a notification. */
  silent: ReadonlySet<string>
  /** Payments of which evidence may have been lost when the database was set back. */
  shaken: ReadonlySet<string>
}

export function weighEvidence({ sent, stored, moved }: Ledgers): Evidence {
  const told = new Set(moved.told.flatMap((one) => (one.isAtRisk ? [] : one.requestId)))
  const paymentOf = new Map([
    ...moved.movements.map((one): [string, string] => [one.requestId, one.paymentId]),
    ...stored.refunds.map((one): [string, string] => [one.id, one.paymentId]),
    ...sent.refunds.map((one): [string, string] => [one.refundId, one.paymentId]),
    ...sent.portal.map((one): [string, string] => [one.requestId, one.paymentId]),
  ])
  const atRisk = [...moved.movements, ...moved.told, ...moved.accepted].filter(
    (one) => one.isAtRisk,
  )
  return {
    told,
    moved: new Set(moved.movements.map(({ requestId }) => requestId)),
    silent: new Set(
      moved.movements
        .filter(({ requestId }) => !told.has(requestId))
        .map(({ paymentId }) => paymentId),
    ),
    shaken: new Set(atRisk.flatMap(({ requestId }) => paymentOf.get(requestId) ?? [])),
  }
}

type Amount = { paymentId: string; amount: string }

/** Adds the amounts of one payment. */
export function sumOf(paymentId: string, ...lists: readonly (readonly Amount[])[]): string {
  return addAmounts(
    lists
      .flat()
      .filter((one) => one.paymentId === paymentId)
      .map(({ amount }) => amount),
  )
}

/** Adds what was refunded of a payment at the portal without a notification that the service certainly has. */
export function sumUnknown({ sent }: Ledgers, { told }: Evidence, paymentId: string): string {
  return sumOf(
    paymentId,
    sent.portal.filter(({ requestId }) => !told.has(requestId)),
  )
}
