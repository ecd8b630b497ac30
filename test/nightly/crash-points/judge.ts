import { compareAmounts, subtractAmount } from '../../../src/money.ts'

/** What both sides hold about one refund once nothing happens any more. Amounts are decimal strings. */
export type Observed = {
  refundId: string
  /** What was requested, and what the payment was. */
  amount: string
  paid: string
  /** Whether the gateway refuses a request id that it has seen. */
  dedupes: boolean
  /** At the gateway: what moved for the payment, and how many REFUND requests arrived in full. */
  moved: readonly string[]
  arrived: number
  /** The refunds of the payment that are stored, and what their API shows. */
  stored: readonly { id: string; status: string }[]
  /** The outcomes of the recorded attempts; null while one is in progress. */
  attempts: readonly (string | null)[]
  refundable: string
  /** Only growth shows that it succeeded. */
  isInferred: boolean
  isLeased: boolean
  isFinal: boolean
  /** Types and statuses of the refund's events, oldest first. */
  events: readonly { type: string; status: string }[]
  /**
   * What is left to refund once a person has decided that a refund in `needs_review` failed, or confirmed one that was
   * inferred; null without one, or when the decision was refused.
   */
  refundableDecided: string | null
}

export type Damage = 'moved twice' | 'not moved' | 'stuck' | 'disagrees'
export type Finding = { damage: Damage; what: string }

/**
 * Compares the service with the gateway. The money of a refund has to move once. Only where the gateway does not
 * deduplicate, and an attempt may have reached it without an answer, may it not have moved: then a person decides.
 */
export function judge(observed: Observed): Finding[] {
  const { amount, dedupes, moved, arrived, stored, attempts } = observed
  const [own] = stored
  const found = (damage: Damage, isFound: boolean, what: string): Finding[] =>
    isFound ? [{ damage, what }] : []
  const mayBeLost = !dedupes && attempts.includes('unknown')
  const expected = moved.length > 0 ? 'succeeded' : 'needs_review'
  const status = own?.status ?? 'not stored'
  const isOpen = !['succeeded', 'failed', 'needs_review'].includes(status)
  const wrongAmount = moved.some((one) => compareAmounts(one, amount) !== 0)
  return [
    ...found('moved twice', moved.length > 1, `${moved.join(', ')} moved`),
    ...found('moved twice', wrongAmount, `${moved.join(', ')} moved for a refund of ${amount}`),
    ...found('not moved', moved.length === 0 && !mayBeLost, `nothing moved, and it is ${status}`),
    ...found('stuck', isOpen, `it is ${status}`),
    ...found('disagrees', !isOpen && status !== expected, `it is ${status}, not ${expected}`),
    ...found('disagrees', stored.length > 1, `${stored.length} refunds are stored`),
    ...found('disagrees', own?.id !== observed.refundId, `${own?.id} is stored`),
    ...found(
      'disagrees',
      arrived > attempts.length,
      `${arrived} arrived of ${attempts.length} attempts`,
    ),
    ...found('stuck', attempts.includes(null), 'an attempt is in progress'),
    ...found('stuck', observed.isLeased, 'its transaction is leased'),
    ...found('stuck', status === 'succeeded' && !observed.isFinal, 'its transaction is not final'),
    ...judgeRefundable(observed, status),
    ...judgeEvents(observed, status),
  ]
}

/**
 * The amount is gone or reserved; a person's decision that it failed releases it. What was inferred is both, until a person
 * confirms it.
 */
function judgeRefundable(
  { amount, paid, refundable, isInferred, refundableDecided }: Observed,
  status: string,
): Finding[] {
  const rest = subtractAmount(paid, amount)
  const expected = isInferred ? subtractAmount(rest, amount) : rest
  const findings: Finding[] = []
  if (compareAmounts(refundable, expected) !== 0) {
    findings.push({ damage: 'disagrees', what: `${refundable} is refundable, not ${expected}` })
  }
  if (status !== 'needs_review' && !isInferred) return findings
  const decided = isInferred ? rest : paid
  if (refundableDecided === null || compareAmounts(refundableDecided, decided) !== 0) {
    const what = `a person cannot end it: then ${refundableDecided} is refundable, not ${decided}`
    findings.push({ damage: 'stuck', what })
  }
  return findings
}

function judgeEvents({ events }: Observed, status: string): Finding[] {
  const created = events.filter(({ type }) => type === 'refund.created').length
  const last = events.at(-1)?.status
  if (created === 1 && last === status) return []
  const listed = events.map((event) => `${event.type} ${event.status}`).join(', ')
  return [{ damage: 'disagrees', what: `the feed has ${listed || 'nothing'}` }]
}
