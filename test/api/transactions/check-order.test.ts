import { afterEach, describe, expect, it } from 'vitest'
import { checkOrders } from '../../../src/maintenance/housekeeping.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { checkOrder } from '../../../src/transactions/check-order.ts'
import { readPage } from '../../support/api.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { expectUnblocked, waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { payOrder } from '../../support/orders.ts'
import { MERCHANT, postIpn } from '../../support/service.ts'
import {
  claimOne,
  commitClaim,
  makeDueNow,
  makeTransaction,
  notifyOf,
  syncAgain,
} from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab({ settings: { IPN_SIGNATURE: 'optional' } })
afterEach(() => emptyTables(lab.database))

const readFlags = async (...orders: { transactionId: string }[]) =>
  Promise.all(
    orders.map(async ({ transactionId }) => (await lab.transaction(transactionId)).sameOrder),
  )

/** The transactions that have an open or a resolved discrepancy, oldest first. */
async function readFound() {
  const { data } = await readPage(await lab.api('/v1/discrepancies?kind=order_paid_twice'))
  return data.map((one) => [one.transactionId, one.resolvedAt === null]).reverse()
}

describe('two paid transactions of one order', () => {
  it('are flagged on both, with a discrepancy and an event for each', async () => {
    const first = await payOrder(lab, 'DH1')
    const tag = async () =>
      (await lab.api(`/v1/transactions/${first.transactionId}`)).headers.get('etag')
    const before = await tag()
    expect(await readFlags(first)).toEqual([[]])
    const second = await payOrder(lab, 'DH1')
    expect(await readFlags(first, second)).toEqual([[second.transactionId], [first.transactionId]])
    expect(await tag()).not.toBe(before)
    expect(await readFound()).toEqual([
      [first.transactionId, true],
      [second.transactionId, true],
    ])
    const { data } = await readPage(await lab.api('/v1/discrepancies'))
    expect(data[0]).toMatchObject({
      ours: { source: 'service', says: 'amount 100 is expected of order DH1' },
      theirs: { source: 'query', says: `also paid: ${first.transactionId}` },
    })
    const recorded = await readRecorded(lab, first.transactionId, second.transactionId)
    for (const type of ['discrepancy.found', 'transaction.updated']) {
      const events = recorded.filter((one) => one.type === type)
      expect(events.map(({ transactionId }) => transactionId)).toEqual([
        first.transactionId,
        second.transactionId,
      ])
    }
    expect(recorded.at(-1)?.data).toEqual(await lab.transaction(second.transactionId))
  })

  it('are flagged when their commits do not see each other', async () => {
    const first = await payOrder(lab, 'DH1', [{ status: 'PROCESSING' }])
    const second = await payOrder(lab, 'DH1', [{ status: 'PROCESSING' }])
    for (const { payments } of [first, second]) {
      await lab.control('PATCH', `/payments/${payments[0]?.id}`, { status: 'SUCCESS' })
    }
    await whileUncommitted(
      lab.database,
      (held) => held`
        select from transactions where transaction_id = ${second.transactionId} for update`,
      async (commit) => {
        await makeDueNow(lab, first.transactionId)
        const claimed = await claimOne(lab.service.ctx)
        await commitClaim(lab.service.ctx, claimed)
        await checkOrders(lab.service.ctx)
        expect(await readFlags(first, second)).toEqual([[], []])
        await commit()
      },
    )
    await syncAgain(lab, second.transactionId)
    expect(await readFlags(first, second)).toEqual([[second.transactionId], [first.transactionId]])
  })

  it('are flagged by a later pass if the process stops right after its commit', async () => {
    const first = await payOrder(lab, 'DH1')
    const second = await payOrder(lab, 'DH1', [{ status: 'PROCESSING' }])
    await lab.control('PATCH', `/payments/${second.payments[0]?.id}`, { status: 'SUCCESS' })
    await makeDueNow(lab, second.transactionId)
    await commitClaim(lab.service.ctx, await claimOne(lab.service.ctx))
    expect(await readFlags(first, second)).toEqual([[], []])
    expect(await checkOrders(lab.service.ctx)).toBe(1)
    expect(await readFlags(first, second)).toEqual([[second.transactionId], [first.transactionId]])
    expect(await checkOrders(lab.service.ctx)).toBe(0)
  })

  it('are flagged by that pass though the check of another order fails', async () => {
    const [broken, first, second] = [
      await payOrder(lab, 'DH0'),
      await payOrder(lab, 'DH1'),
      await payOrder(lab, 'DH1'),
    ]
    const ids = [broken, first].map(({ transactionId }) => transactionId)
    await lab.database.sql`update transactions set same_order = '{}'`
    for (const id of ids) {
      await lab.database.sql`
        update transactions set order_check_due = true where transaction_id = ${id}`
    }
    await lab.database.sql.unsafe(`
      create function refuse_one() returns trigger language plpgsql as $$
        begin raise exception 'the disk is broken here'; end $$;
      create trigger refuse_one before update on transactions for each row
        when (old.order_id = 'DH0') execute function refuse_one()`)
    const checked = checkOrders(lab.service.ctx).finally(
      () => lab.database.sql`drop function refuse_one cascade`,
    )
    await expect(checked).resolves.toBe(2)
    expect(await readFlags(first, second)).toEqual([[second.transactionId], [first.transactionId]])
    expect(await checkOrders(lab.service.ctx)).toBe(1)
  })

  it('are flagged once the order id of one is known', async () => {
    const first = await payOrder(lab, 'DH1')
    const second = await payOrder(lab, 'DH1', [{}], { svc_OrderID: '' })
    expect(await readFlags(first, second)).toEqual([[], []])
    await notifyOf(lab, second.transactionId, { svc_OrderID: 'DH1' })
    await syncAgain(lab, second.transactionId)
    expect(await readFlags(first, second)).toEqual([[second.transactionId], [first.transactionId]])
  })

  it.each([
    ['is refunded', { refundedAmount: '100' }],
    ['fails after all', { status: 'FAILED' }],
  ])('are flagged no more when one %s', async (_, change) => {
    const first = await payOrder(lab, 'DH1')
    const second = await payOrder(lab, 'DH1')
    await lab.control('PATCH', `/payments/${second.payments[0]?.id}`, change)
    await syncAgain(lab, second.transactionId)
    expect(await readFlags(first, second)).toEqual([[], []])
    expect((await readFound()).map(([, open]) => open)).toEqual([false, false])
    await syncAgain(lab, first.transactionId)
    expect(await readFlags(first, second)).toEqual([[], []])
  })

  it('stay flagged with each other while one of three is refunded', async () => {
    const orders = [
      await payOrder(lab, 'DH1'),
      await payOrder(lab, 'DH1'),
      await payOrder(lab, 'DH1'),
    ]
    const [a, b, c] = orders.map(({ transactionId }) => transactionId)
    expect(await readFlags(...orders)).toEqual([
      [b, c],
      [a, c],
      [a, b],
    ])
    await lab.control('PATCH', `/payments/${orders[1]?.payments[0]?.id}`, { refundedAmount: '100' })
    await syncAgain(lab, b ?? '')
    expect(await readFlags(...orders)).toEqual([[c], [], [a]])
  })
})

describe('parts of one order', () => {
  const PARTS = { svc_Amount: 100 }
  const pay = (amount: string, named: object = PARTS) =>
    payOrder(lab, 'DH1', [{ amount }], { ...named })

  it('a deposit and the rest are no order paid twice: together they are its amount', async () => {
    const parts = [await pay('30'), await pay('70')]
    const [deposit, rest] = parts.map(({ transactionId }) => transactionId)
    expect(await readFlags(...parts)).toEqual([[rest], [deposit]])
    expect(await readFound()).toEqual([])
  })

  it('are paid twice once they exceed its amount, until that is refunded', async () => {
    const parts = [await pay('30'), await pay('70')]
    const third = await pay('30')
    expect((await readFound()).map(([, open]) => open)).toEqual([true, true, true])
    const { data } = await readPage(await lab.api('/v1/discrepancies?kind=order_paid_twice'))
    expect(data[0]).toMatchObject({ ours: { says: 'amount 100 is expected of order DH1' } })
    await lab.control('PATCH', `/payments/${third.payments[0]?.id}`, { refundedAmount: '30' })
    await syncAgain(lab, third.transactionId)
    expect((await readFound()).map(([, open]) => open)).toEqual([false, false, false])
    expect((await readFlags(...parts)).flat()).toHaveLength(2)
  })

  it('are paid twice once another payment of one of them exceeds the amount', async () => {
    const [deposit, rest] = [await pay('30'), await pay('70')]
    await makeTransaction(lab, rest.transactionId, [{ amount: '1' }])
    await syncAgain(lab, rest.transactionId)
    expect(await readFound()).toEqual([
      [deposit.transactionId, true],
      [rest.transactionId, true],
    ])
    await syncAgain(lab, rest.transactionId)
    const { data } = await readPage(await lab.api('/v1/discrepancies?kind=order_paid_twice'))
    expect(data.map(({ times }) => times)).toEqual([1, 1])
  })

  it.each([
    ['state different amounts', [{ svc_Amount: 30 }, { svc_Amount: 70 }]],
    ['are in two currencies', [PARTS, { ...PARTS, svc_Currency: 'USD' }]],
    ['state no amount', [{ svc_Amount: 0 }, { svc_Amount: 0 }]],
  ])('whose transactions %s are flagged all the same', async (_, [first, second]) => {
    await pay('30', first)
    await pay('70', second)
    expect((await readFound()).map(([, open]) => open)).toEqual([true, true])
  })
})

describe('a paid transaction is not flagged', () => {
  it('with one that is not paid, or of another order or account', async () => {
    const paid = await payOrder(lab, 'DH1')
    const failed = await payOrder(lab, 'DH1', [{ status: 'FAILED' }])
    const open = await payOrder(lab, 'DH1', [{ status: 'PROCESSING' }])
    const another = await payOrder(lab, 'DH2')
    await lab.database.sql`
      insert into transactions (merchant_code, transaction_id, order_id, order_verified, state, final)
      values ('OTHER1', 'T-OTHER', 'DH1', true, 'paid', true)`
    await makeDueNow(lab, paid.transactionId)
    await syncDue(lab.service.ctx)
    expect(await readFlags(paid, failed, open, another)).toEqual([[], [], [], []])
  })

  it('with one whose order id no verified notification names', async () => {
    const paid = await payOrder(lab, 'DH1')
    const forged = {
      svc_MerchantCode: MERCHANT.merchantCode,
      svc_TransactionID: 'T-FORGED',
      svc_OrderID: 'DH1',
    }
    await makeTransaction(lab, 'T-FORGED', [{ amount: '100' }])
    expect((await postIpn(lab.service.url, forged)).status).toBe(200)
    await syncDue(lab.service.ctx)
    await syncAgain(lab, paid.transactionId)
    expect(await lab.transaction('T-FORGED')).toMatchObject({ orderId: 'DH1', state: 'paid' })
    expect(await readFlags(paid, { transactionId: 'T-FORGED' })).toEqual([[], []])
  })
})

it('checks of one order at once wait for each other, without a deadlock', async () => {
  const first = await payOrder(lab, 'DH1')
  const second = await payOrder(lab, 'DH1')
  await lab.database.sql`update transactions set same_order = '{}'`
  await whileUncommitted(
    lab.database,
    (held) => held`
      select from transactions where transaction_id = ${first.transactionId} for update`,
    async (commit) => {
      await lab.database.sql`
        update transactions set order_check_due = true where transaction_id = ${second.transactionId}`
      const checks = [checkOrders(lab.service.ctx), checkOrders(lab.service.ctx)]
      await waitUntilBlocked(lab.database, 2)
      await commit()
      await Promise.all(checks)
    },
  )
  expect(await readFlags(first, second)).toEqual([[second.transactionId], [first.transactionId]])
  expect((await readFound()).every(([, open]) => open)).toBe(true)
})

describe('a check of an order', () => {
  const { merchantCode } = MERCHANT
  const setDue = (transactionId: string) => lab.database.sql`
    update transactions set order_check_due = true where transaction_id = ${transactionId}`
  const hold = (transactionId: string) => (held: Sql) =>
    held`
    select from transactions where transaction_id = ${transactionId} for update`

  it('locks and writes only what changes, however many are paid', async () => {
    const [first, second, third] = [
      await payOrder(lab, 'DH1'),
      await payOrder(lab, 'DH1'),
      await payOrder(lab, 'DH1'),
    ]
    await setDue(third.transactionId)
    // A row that was written or locked since has another `xmin` or `xmax`.
    const read = () => lab.database.sql`
      select transaction_id, xmin::text, xmax::text from transactions
      where transaction_id <> ${third.transactionId} order by transaction_id`
    const before = await read()
    expect(await checkOrders(lab.service.ctx)).toBe(1)
    expect(await checkOrders(lab.service.ctx)).toBe(0)
    expect(await read()).toEqual(before)
    await setDue(third.transactionId)
    await whileUncommitted(lab.database, hold(first.transactionId), async (commit) => {
      await expectUnblocked(lab.database, checkOrders(lab.service.ctx))
      await commit()
    })
    expect((await readFlags(first, second, third)).map((ids) => ids.length)).toEqual([2, 2, 2])
  })

  it('checks again what changes while it waits, so that no flag is stale', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    await lab.database.sql`update transactions set same_order = '{}'`
    await lab.database.sql`delete from discrepancies`
    await setDue(second.transactionId)
    await whileUncommitted(
      lab.database,
      // As a commit does that finds no other transaction of the order, and so no reason to check it.
      (held) => held`
        update transactions set state = 'refunded', version = version + 1
        where transaction_id = ${first.transactionId}`,
      async (commit) => {
        const check = checkOrders(lab.service.ctx)
        await waitUntilBlocked(lab.database)
        await commit()
        await check
      },
    )
    expect(await checkOrders(lab.service.ctx)).toBe(1)
    expect(await readFlags(first, second)).toEqual([[], []])
    expect(await checkOrders(lab.service.ctx)).toBe(0)
  })

  it('that has read the order later also writes it later', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    await lab.database.sql`update transactions set same_order = '{}'`
    await lab.database.sql`delete from discrepancies`
    await whileUncommitted(lab.database, hold(first.transactionId), async (commit) => {
      const key = { merchantCode, transactionId: second.transactionId }
      const earlier = checkOrder(lab.service.ctx, key)
      await waitUntilBlocked(lab.database)
      await lab.database.sql`
        update transactions set state = 'refunded', order_check_due = true, version = version + 1
        where transaction_id = ${second.transactionId}`
      const later = checkOrder(lab.service.ctx, key)
      await Promise.race([later, waitUntilBlocked(lab.database, 2)])
      await commit()
      await Promise.all([earlier, later])
    })
    expect(await readFlags(first, second)).toEqual([[], []])
  })
})
