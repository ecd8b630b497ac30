import { Big } from 'big.js'

/** A refund of ours, as far as growth can say something about it. */
export type OwnRefund = {
  id: string
  amount: string
  /**
   * `known` a notification or a person says it happened; `open` sent, and nobody knows the end;
   * `failing` sent, and a notification says it failed; `done` settled by inference before.
   */
  standing: 'known' | 'open' | 'failing' | 'done'
  /** Its amount is matched to growth already. */
  matched: boolean
  /** Only a snapshot sent after the refund can show it. */
  sentBefore: boolean
  /** Growth that nobody explained was there before it was sent, and could be taken for its own. */
  sentAmidGrowth: boolean
  /** Its success was concluded from growth alone. */
  inferred: boolean
}

/** A refund that somebody else made, known from its notification. */
export type ForeignRefund = { id: string; amount: string; matched: boolean }

export type Growth = {
  /** `refundedAmount` when the payment was first seen, and in the snapshot at hand. */
  atFirst: string
  now: string
  /** Both oldest first. */
  own: readonly OwnRefund[]
  foreign: readonly ForeignRefund[]
  /** A refund of the payment waits for a person: nothing is concluded from growth alone. */
  underReview: boolean
}

export type Attribution = {
  /** Known refunds whose amounts are found in the growth. */
  matchedOwn: string[]
  matchedForeign: string[]
  /** Open refunds that the growth shows to have happened. */
  inferred: string[]
  /** Settled by inference once, and the growth that spoke for it is gone or belongs to another. */
  doubtful: string[]
  /** Growth that nobody explains (a decimal string, `0` for none); below zero: growth that went away. */
  unexplained: string
}

/**
 * Matches growth of a payment's refunded amount to refunds, every unit once: first to refunds known to
 * have happened, ours before others', oldest first, each only whole; then, by inference, to the open
 * ones of ours when together they make up what remains (one alone, or all of them), and nothing remained
 * before they were sent. Anything else settles nobody. What was inferred gives way to growth that went away, and to a foreign refund of the
 * same amount that finds no growth of its own: the two cannot be told apart, so a person has to look.
 */
export function attributeGrowth({ atFirst, now, own, foreign, underReview }: Growth): Attribution {
  const matchedOwn: string[] = []
  const matchedForeign: string[] = []
  const doubtful: string[] = []
  const inferred: string[] = []
  let left = new Big(now).minus(atFirst)
  for (const { amount, matched } of [...own, ...foreign]) if (matched) left = left.minus(amount)

  const concluded = own.filter(
    ({ matched, inferred, standing }) => matched && inferred && standing === 'done',
  )
  while (left.lt(0)) {
    const newest = concluded.pop()
    if (!newest) break
    doubtful.push(newest.id)
    left = left.plus(newest.amount)
  }
  for (const { id, amount, standing, matched, sentBefore } of own) {
    if (standing !== 'known' || matched || !sentBefore || left.lt(amount)) continue
    matchedOwn.push(id)
    left = left.minus(amount)
  }
  for (const { id, amount, matched } of foreign) {
    if (matched) continue
    const twin = left.lt(amount)
      ? concluded.findLastIndex((one) => new Big(one.amount).eq(amount))
      : -1
    const [imitated] = twin === -1 ? [] : concluded.splice(twin, 1)
    if (imitated) {
      doubtful.push(imitated.id)
      left = left.plus(imitated.amount)
    }
    if (left.lt(amount)) continue
    matchedForeign.push(id)
    left = left.minus(amount)
  }
  const open = own.filter(({ standing, matched }) => standing === 'open' && !matched)
  const sum = open.reduce((total, { amount }) => total.plus(amount), new Big(0))
  const mayInfer =
    !underReview &&
    doubtful.length === 0 &&
    open.every((one) => one.sentBefore && !one.sentAmidGrowth)
  if (mayInfer && left.gt(0) && left.eq(sum)) {
    inferred.push(...open.map(({ id }) => id))
    left = new Big(0)
  }
  return { matchedOwn, matchedForeign, inferred, doubtful, unexplained: left.toFixed() }
}
