import { makeDice } from './dice.ts'

/** What a customer and an order system do, determined by the seed and the number. */
export type Wish = {
  transactionId: string
  payments: { id: string; amount: string; paymentMethod: string; status: string }[]
  /** How its notification is sent. */
  ipn: { copies: number; delayMs: number; shuffle: boolean }
  /** When a payment in progress succeeds (ms), and whether that is notified. */
  succeeds: { afterMs: number; notified: boolean } | undefined
  refunds: RefundWish[]
  /** Requests all refunds at once; otherwise each after the previous one has ended. */
  atOnce: boolean
}

export type RefundWish = {
  key: string
  paymentId: string
  amount: string
  receiver: object | undefined
  /** Discards the response and repeats the same request. */
  repeated: boolean
}

const RECEIVER = { accountName: 'NGUYEN VAN A', accountNumber: '123456789', swiftCode: 'ASCBVNVX' }
/** The first streams of a seed are for its moves. */
const FIRST_STREAM = 10

/** Plans transaction `n` of a run: its payment, its notification and its refunds. */
export function planWish(seed: number, n: number): Wish {
  const dice = makeDice(seed, FIRST_STREAM + n)
  const transactionId = `C${seed}X${n}`
  const paymentId = `P${seed}X${n}`
  const status = dice.oneOf(['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS', 'PROCESSING', 'FAILED'])
  const paymentMethod = dice.oneOf(['QR', 'ATM', 'CC'])
  const amount = `${dice.between(1_000, 9_999)}${dice.oneOf(['', '.5', '.25', '.0001'])}`
  const payment = { id: paymentId, amount, paymentMethod, status }
  const failed = { ...payment, id: `${paymentId}F`, status: 'FAILED' }
  return {
    transactionId,
    payments: dice.chance(0.1) ? [failed, payment] : [payment],
    ipn: { copies: dice.oneOf([1, 1, 1, 2, 3]), delayMs: dice.between(0, 300), shuffle: true },
    succeeds:
      status === 'PROCESSING'
        ? { afterMs: dice.between(300, 3_000), notified: dice.chance(0.5) }
        : undefined,
    refunds: planAmounts(seed, n, amount, status).map((part, index) => ({
      key: `K${seed}X${n}-${index}`,
      paymentId,
      amount: part,
      receiver: paymentMethod === 'QR' ? RECEIVER : undefined,
      repeated: dice.chance(0.2),
    })),
    atOnce: dice.chance(0.2),
  }
}

/** Plans refunds of different amounts, so that growth identifies each of them. */
function planAmounts(seed: number, n: number, amount: string, status: string): string[] {
  const dice = makeDice(seed, -1 - n)
  if (status === 'FAILED' || dice.chance(0.4)) return []
  if (dice.chance(0.3)) return [amount]
  const parts = [dice.between(1, 99), dice.between(100, 299), `${dice.between(300, 599)}.5`]
  return dice.shuffle(parts.map(String)).slice(0, dice.between(1, 3))
}
