import { ACCOUNTS } from './accounts.ts'
import { type Dice, makeDice } from './moves.ts'

/** What a customer and an order system do, determined by the seed, the number and the account. */
export type Wish = {
  merchantCode: string
  transactionId: string
  payments: { id: string; amount: string; paymentMethod: string; status: string }[]
  /** How its notification is sent. */
  ipn: Delivery
  /** When a payment in progress succeeds (ms), and whether that is notified. */
  succeeds: { afterMs: number; notified: boolean } | undefined
  refunds: RefundWish[]
  /** Requests all refunds at once; otherwise each after the previous one has ended. */
  atOnce: boolean
  /** Refunds of its last payment on the gateway's portal. */
  portal: PortalWish[]
}

export type Delivery = { copies: number; delayMs: number; shuffle: boolean }

export type RefundWish = {
  merchantCode: string
  key: string
  paymentId: string
  amount: string
  receiver: object | undefined
  /** Discards the response and repeats the same request. */
  repeated: boolean
  /** Requests all that was paid, although a part was refunded before: it has to be refused. */
  isTooMuch: boolean
}

export type PortalWish = {
  amount: string
  /** Made before the service can see the payment; otherwise this long after it has shown it (ms). */
  when: 'before' | { afterMs: number }
  /** How its notification is sent; false for never. */
  ipn: Delivery | false
}

const RECEIVER = { accountName: 'NGUYEN VAN A', accountNumber: '123456789', swiftCode: 'ASCBVNVX' }
/** The first streams of a seed are for its moves. */
const FIRST_STREAM = 10
/** The longest delay of a portal refund's notification. */
const PORTAL_DELAY_MS = 4_000

/** Plans the customers with number `n`: of one account, or one of each with the same ids and keys. */
export function planWishes(seed: number, n: number): Wish[] {
  const [first, second] = ACCOUNTS.map((_, side) => planWish(seed, n, side))
  const dice = makeDice(seed, FIRST_STREAM + 3 * n)
  const both = dice.chance(0.4)
  return [first, second].flatMap((wish, side) => (wish && (both || side === n % 2) ? [wish] : []))
}

/**
 * Plans one transaction of an account: its payment, its notification and its refunds.
 * @param side the account's place in `ACCOUNTS`
 */
export function planWish(seed: number, n: number, side = 0): Wish {
  const dice = makeDice(seed, FIRST_STREAM + 3 * n + 1 + side)
  const merchantCode = ACCOUNTS[side]?.merchantCode ?? ACCOUNTS[0].merchantCode
  const paymentId = `P${seed}X${n}`
  const status = dice.oneOf(['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS', 'PROCESSING', 'FAILED'])
  const paymentMethod = dice.oneOf(['QR', 'ATM', 'CC'])
  const amount = `${dice.between(3_000, 9_999)}${dice.oneOf(['', '.5', '.25', '.0001'])}`
  const payment = { id: paymentId, amount, paymentMethod, status }
  const failed = { ...payment, id: `${paymentId}F`, status: 'FAILED' }
  const { parts, portal } = planAmounts(makeDice(seed, -1 - 2 * n - side), amount, status)
  return {
    merchantCode,
    transactionId: `C${seed}X${n}`,
    payments: dice.chance(0.1) ? [failed, payment] : [payment],
    ipn: { copies: dice.oneOf([1, 1, 1, 2, 3]), delayMs: dice.between(0, 300), shuffle: true },
    succeeds:
      status === 'PROCESSING'
        ? { afterMs: dice.between(300, 3_000), notified: dice.chance(0.5) }
        : undefined,
    refunds: parts.map((part, index) => ({
      merchantCode,
      key: `K${seed}X${n}-${index}`,
      paymentId,
      amount: part,
      receiver: paymentMethod === 'QR' ? RECEIVER : undefined,
      repeated: dice.chance(0.2),
      isTooMuch: portal.length > 0 && part === amount,
    })),
    atOnce: dice.chance(0.2),
    portal,
  }
}

/** Plans the refunds of a payment. With a portal refund one of all that was paid is too much. */
function planAmounts(
  dice: Dice,
  amount: string,
  status: string,
): { parts: string[]; portal: PortalWish[] } {
  if (status === 'FAILED' || dice.chance(0.3)) return { parts: [], portal: [] }
  if (dice.chance(0.2)) return { parts: [amount], portal: [] }
  const one = String(dice.between(1, 299))
  const different = [dice.between(1, 99), dice.between(100, 299), `${dice.between(300, 599)}.5`]
  // Equal ones cannot be told apart by growth.
  const all = dice.chance(0.35) ? [one, one, one] : dice.shuffle(different.map(String))
  const parts = all.slice(0, dice.between(1, 3))
  if (!dice.chance(0.45)) return { parts, portal: [] }
  const mayBeFirst = status === 'SUCCESS'
  const portal = Array.from({ length: dice.oneOf([1, 1, 2]) }, () =>
    planPortalRefund(dice, parts, mayBeFirst),
  )
  const isTooMuch = portal[0]?.when === 'before' && dice.chance(0.4)
  return { parts: isTooMuch ? [amount, ...parts] : parts, portal }
}

/** Half of them have the amount of a refund of ours. */
function planPortalRefund(dice: Dice, parts: readonly string[], mayBeFirst: boolean): PortalWish {
  const delivery = {
    copies: dice.oneOf([1, 1, 2, 3]),
    delayMs: dice.oneOf([0, dice.between(0, PORTAL_DELAY_MS)]),
    shuffle: dice.chance(0.5),
  }
  return {
    amount: (dice.chance(0.5) ? parts[0] : undefined) ?? String(dice.between(1, 299)),
    when: mayBeFirst && dice.chance(0.4) ? 'before' : { afterMs: dice.between(0, 1_500) },
    ipn: dice.chance(0.85) && delivery,
  }
}
