import { type RefundRow, STATES } from '../../../../src/refunds/lifecycle.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import type { World } from './world.ts'

const {
  REFUND_RESEND_AFTER_MS: RESEND,
  REFUND_CONFIRM_FAILED_MS: CONFIRM,
  REFUND_RESEND_FOR_MS: RESEND_FOR,
  REFUND_RESOLVE_FOR_MS: RESOLVE,
  REFUND_SEND_WITHIN_MS: SEND_WITHIN,
} = REFUND_SETTINGS
/** One answer may omit a payment by mistake (`compare-payments.ts`). */
const BELIEVED = 60_000

/** The ages of a refund, and what rules compare them with: in between they cannot be told apart. */
const DEADLINES = {
  sinceRequestedMs: [RESOLVE, SEND_WITHIN],
  sinceFirstSentMs: [RESEND_FOR],
  sinceSentMs: [RESEND, CONFIRM, RESOLVE],
  sinceRefusedMs: [CONFIRM],
  sinceFailureNotifiedMs: [CONFIRM],
  sinceNoGrowthMs: [CONFIRM],
  sinceReturnSeenMs: [CONFIRM],
} as const

type Age = keyof typeof DEADLINES
const AGES = Object.keys(DEADLINES).filter((name): name is Age => name in DEADLINES)

/** Lets time pass until the next deadline of anything is over; nothing is younger then. */
export function tick(world: World): World | undefined {
  const { payment } = world
  const next = Math.min(
    ...after(payment.fellMs, [CONFIRM]),
    ...after(payment.unlistedMs, [BELIEVED]),
    ...world.external.flatMap((one) => (isWaiting(one) ? after(one.sinceSeenMs, [RESOLVE]) : [])),
    ...world.rows.flatMap((row) =>
      row === null || isTimeless(row)
        ? []
        : AGES.flatMap((age) => after(row[age], listDeadlines(row, age))),
    ),
  )
  if (next === Number.POSITIVE_INFINITY) return undefined
  const rows = world.rows.map((row) => {
    if (row === null || isTimeless(row)) return row
    const ages = AGES.map((age) => [age, lift(row[age], next, DEADLINES[age])])
    return { ...row, ...Object.fromEntries(ages) }
  })
  const external = world.external.map((one) => ({
    ...one,
    sinceSeenMs: isWaiting(one) ? (lift(one.sinceSeenMs, next, [RESOLVE]) ?? 0) : 0,
  }))
  return {
    ...world,
    rows,
    external,
    payment: {
      ...payment,
      fellMs: lift(payment.fellMs, next, [CONFIRM]),
      unlistedMs: lift(payment.unlistedMs, next, [BELIEVED]),
    },
  }
}

const isWaiting = ({ matched, outcome }: World['external'][number]) => !matched && outcome === null
const isTimeless = ({ status }: RefundRow) => STATES[status].over === true && status !== 'returned'

/** The deadlines of a refund in its status. */
function listDeadlines({ status, unanswered }: RefundRow, age: Age): readonly number[] {
  if (age === 'sinceRequestedMs' && !STATES[status].unsent) return []
  if (age === 'sinceFirstSentMs' && !(status === 'unknown' && unanswered)) return []
  if (status === 'returned' && age !== 'sinceReturnSeenMs') return []
  return status === 'accepted' && age === 'sinceSentMs' ? [RESOLVE] : DEADLINES[age]
}

const after = (ms: number | null, deadlines: readonly number[]) =>
  ms === null ? [] : deadlines.filter((one) => one > ms).slice(0, 1)

function lift(ms: number | null, to: number, deadlines: readonly number[]): number | null {
  if (ms === null) return null
  return Math.max(0, ...deadlines.filter((one) => one <= Math.max(ms, to)))
}
