import { afterEach, describe, expect, it, vi } from 'vitest'
import { createBatcher } from '../../../src/platform/concurrency/batcher.ts'
import { findTransaction, MAX_LOOKUPS } from '../../../src/transactions/find-transaction.ts'
import type { TransactionsContext } from '../../../src/transactions/types.ts'
import { seedPayment, seedTransaction } from '../../support/api.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig()
const only = [MERCHANT.merchantCode]

afterEach(() => vi.restoreAllMocks())

const find = (transactionId: string, merchants: readonly string[] = only) =>
  findTransaction(rig.service.ctx, merchants, transactionId)

/** A context whose statements have run when the test sees them, and give their result when it lets them. */
function holdStatements() {
  const { db } = rig.service.ctx
  const held: { parameters: unknown; release(): void }[] = []
  const holding = new Proxy(db.lookups.sql, {
    get(target, member) {
      if (member !== 'unsafe') return Reflect.get(target, member)
      return async (...asked: Parameters<typeof db.sql.unsafe>) => {
        const rows = await target.unsafe(...asked)
        await new Promise<void>((release) => held.push({ parameters: asked[1], release }))
        return rows
      }
    },
  })
  const ctx: Pick<TransactionsContext, 'db' | 'transactionLookups'> = {
    db: { ...db, lookups: { ...db.lookups, sql: holding } },
    transactionLookups: createBatcher(MAX_LOOKUPS, 60_000),
  }
  return { ctx, held }
}

describe('reads by id', () => {
  it('that arrive while a statement runs see what was committed before they came', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-FRESH', orderId: 'before' })
    const { ctx, held } = holdStatements()
    const early = findTransaction(ctx, only, 'T-FRESH')
    await waitUntil(() => held.length === 1, { what: 'the first statement' })
    await rig.database.sql`
      update transactions set order_id = 'after' where transaction_id = 'T-FRESH'`
    const late = [1, 2].map(() => findTransaction(ctx, only, 'T-FRESH'))
    held[0]?.release()
    expect((await early).transaction.orderId).toBe('before')
    await waitUntil(() => held.length === 2, { what: 'the second statement' })
    held[1]?.release()
    const found = await Promise.all(late)
    expect(found.map(({ transaction }) => transaction.orderId)).toEqual(['after', 'after'])
    expect(held).toHaveLength(2)
  })

  it('of one transaction that share a statement each get it whole, and once', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-SAME' })
    await seedPayment(rig.database, { paymentId: 'P-1', transactionId: 'T-SAME', amount: '10.50' })
    await seedPayment(rig.database, { paymentId: 'P-2', transactionId: 'T-SAME' })
    await seedTransaction(rig.database, { transactionId: 'T-BESIDE' })
    const found = await Promise.all([find('T-SAME'), find('T-BESIDE'), find('T-SAME')])
    const ids = found.map(({ payments }) => payments.map(({ paymentId }) => paymentId))
    expect(ids).toEqual([['P-1', 'P-2'], [], ['P-1', 'P-2']])
    expect(found[0]?.payments[0]).toMatchObject({
      amount: '10.50',
      refundable: '10.50',
    })
  })

  it('that find nothing, or too much, do not fail those beside them', async () => {
    const both = [MERCHANT.merchantCode, 'OTHER1']
    for (const merchantCode of both) {
      await seedTransaction(rig.database, { transactionId: 'T-TWICE', merchantCode })
    }
    const found = await Promise.allSettled([
      find('T-NONE', both),
      find('T-TWICE', both),
      find('T-TWICE', ['OTHER1']),
    ])
    expect(found).toMatchObject([
      { status: 'rejected', reason: { code: 'transaction_not_found' } },
      { status: 'rejected', reason: { code: 'ambiguous_merchant' } },
      { status: 'fulfilled', value: { transaction: { merchantCode: 'OTHER1' } } },
    ])
  })

  it('have the payments of a transaction in the order in which they were first seen', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-ORDER' })
    const seen = [
      ['P-LATE', '2026-01-01T00:00:00.5Z'],
      ['P-B', '2026-01-01T00:00:00Z'],
      ['P-A', '2026-01-01T00:00:00Z'],
    ] as const
    for (const [paymentId, firstSeenAt] of seen) {
      await seedPayment(rig.database, { paymentId, transactionId: 'T-ORDER', firstSeenAt })
    }
    const { payments } = await find('T-ORDER')
    expect(payments.map(({ paymentId }) => paymentId)).toEqual(['P-A', 'P-B', 'P-LATE'])
  })
})
