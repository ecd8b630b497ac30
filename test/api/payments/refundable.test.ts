import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { compareAmounts } from '../../../src/money.ts'
import {
  type BalanceFacts,
  computeRefundable,
  REFUNDABLE_SQL,
} from '../../../src/payments/find-payments.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()
beforeAll(async () => {
  await database.sql`insert into transactions (merchant_code, transaction_id) values ('M', 'T'), ('N', 'T')`
})

const STATES = [
  ...['pending', 'sending', 'accepted', 'unknown', 'needs_review', 'failed', 'succeeded'],
] as const

/** Formats an integer number of the smallest unit with `decimals` digits after the point. */
function write(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, '0')
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** Facts as the tables can hold them, large and small, so that every bound is crossed. */
const facts = fc.constantFrom(0, 2, 4).chain((decimals) => {
  const top = fc.constantFrom(9n, 1000n, 10n ** BigInt(17 + decimals))
  return top.chain((max) => {
    const amount = fc.bigInt({ min: 0n, max }).map((units) => write(units, decimals))
    const positive = fc.bigInt({ min: 1n, max }).map((units) => write(units, decimals))
    const own = fc.constantFrom(...STATES).chain((status) =>
      fc.record({
        amount: positive,
        status: fc.constant(status),
        matched: status === 'succeeded' ? fc.boolean() : fc.constant(false),
        /** Of another payment or account: it must not count. */
        elsewhere: fc.constantFrom('', '', '', 'payment', 'merchant'),
      }),
    )
    const external = fc.record({ amount: positive, matched: fc.boolean() })
    return fc.record({
      amount,
      now: amount,
      atFirst: amount,
      own: fc.array(own, { maxLength: 5 }),
      external: fc.array(external, { maxLength: 3 }),
    })
  })
})
type Facts = typeof facts extends fc.Arbitrary<infer T> ? T : never

/** The same facts as input of the pure function. */
function toBalance({ amount, now, atFirst, own, external }: Facts): BalanceFacts {
  const mine = own.filter(({ elsewhere }) => elsewhere === '')
  return {
    amount,
    refundedNow: now,
    refundedAtFirst: atFirst,
    matched: [...mine, ...external].filter((one) => one.matched).map((one) => one.amount),
    reserved: [
      ...mine.filter(({ matched, status }) => !matched && status !== 'failed'),
      ...external.filter(({ matched }) => !matched),
    ].map((one) => one.amount),
  }
}

async function readInDatabase({ amount, now, atFirst, own, external }: Facts): Promise<string> {
  const rollBack = new Error('roll back')
  let refundable = ''
  const reading = database.sql.begin(async (tx) => {
    await tx`
      insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of)
      select now(), m, p, 'T', 'SUCCESS', ${amount}, ${now}, ${atFirst}, 'CC', now()
      from (values ('M', 'P'), ('M', 'Q'), ('N', 'P')) as ids (m, p)`
    for (const [at, { amount, status, matched, elsewhere }] of own.entries()) {
      const over = ['succeeded', 'failed', 'needs_review'].includes(status)
      await tx`
        insert into refunds (fingerprint_key_id, requested_principal, merchant_code, refund_id, transaction_id, payment_id, amount,
          idempotency_key, fingerprint, requested_by, status, attempts, matched, due_at, failure_source)
        values ('k', 'key:k', ${elsewhere === 'merchant' ? 'N' : 'M'}, gen_random_uuid(), 'T',
          ${elsewhere === 'payment' ? 'Q' : 'P'}, ${amount}, ${`k${at}`}, '', 'n', ${status}, 1,
          ${matched}, ${over ? null : tx`now()`}, ${status === 'failed' ? 'gateway' : null})`
    }
    for (const [at, { amount, matched }] of external.entries()) {
      await tx`
        insert into external_refunds (merchant_code, request_id, payment_id, amount, matched, ipn_event_id)
        values ('M', ${`r${at}`}, 'P', ${amount}, ${matched}, 1)`
    }
    const [row] = await tx<{ refundable: string }[]>`
      select ${tx.unsafe(REFUNDABLE_SQL)}::text as refundable from payments
      where merchant_code = 'M' and payment_id = 'P'`
    refundable = row?.refundable ?? ''
    throw rollBack
  })
  await reading.catch((error: unknown) => {
    if (error !== rollBack) throw error
  })
  return refundable
}

describe('the refundable amount of a payment', () => {
  it('is the same in SQL and in the pure function, for all facts and decimals', async () => {
    await fc.assert(
      fc.asyncProperty(facts, async (given) => {
        const inDatabase = await readInDatabase(given)
        expect(compareAmounts(inDatabase, computeRefundable(toBalance(given)))).toBe(0)
      }),
      { numRuns: 300 },
    )
  })

  it('never grows when more is reserved, and is never negative', () => {
    const units = fc.bigInt({ min: 1n, max: 1000n }).map((one) => write(one, 2))
    fc.assert(
      fc.property(facts, units, (given, more) => {
        const balance = toBalance(given)
        const before = computeRefundable(balance)
        const after = computeRefundable({ ...balance, reserved: [...balance.reserved, more] })
        expect(compareAmounts(after, before)).toBeLessThanOrEqual(0)
        expect(compareAmounts(after, '0')).toBeGreaterThanOrEqual(0)
      }),
    )
  })

  // What growth has shown is not counted twice, and what was matched counts on when the ledger falls back.
  it.each<[Partial<BalanceFacts>, string]>([
    [{}, '100'],
    [{ refundedNow: '40', refundedAtFirst: '40' }, '60'],
    [{ reserved: ['30', '0.0001'] }, '69.9999'],
    [{ refundedNow: '30', matched: ['30'] }, '70'],
    [{ refundedNow: '30', reserved: ['30'] }, '40'],
    [{ refundedNow: '0', matched: ['30'] }, '70'],
    [{ refundedNow: '90', reserved: ['30'] }, '0'],
  ])('of 100 with %j is %s', (given, left) => {
    const none = { refundedNow: '0', refundedAtFirst: '0', matched: [], reserved: [] }
    expect(computeRefundable({ amount: '100', ...none, ...given })).toBe(left)
  })
})
