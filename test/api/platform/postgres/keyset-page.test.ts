import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ServiceContext } from '../../../../src/create-context.ts'
import { listDiscrepancies } from '../../../../src/discrepancies/routes.ts'
import { cutPage, type Position, readCursor } from '../../../../src/http/list.ts'
import { listPayments } from '../../../../src/payments/find-payments.ts'
import type { PageRead } from '../../../../src/platform/postgres/list-page.ts'
import { listRefunds } from '../../../../src/refunds/find.ts'
import { listTransactions } from '../../../../src/transactions/find-transactions.ts'
import type { TransactionWithPayments } from '../../../../src/transactions/types.ts'
import {
  expectInvalid,
  OTHER,
  readAll,
  readPage,
  seedPayment,
  seedTransaction,
  writeMerchantsFile,
} from '../../../support/api.ts'
import { MERCHANT } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'
import { explain, recordStatements } from './plans.ts'

const file = writeMerchantsFile([MERCHANT, OTHER])
afterAll(() => file.remove())
const rig = useRig({ settings: { ROLE: 'web', MERCHANTS_FILE: file.path } })

const list = (query: string) => rig.api(`/v1/transactions${query}`)

const locate = ({ transaction: t }: TransactionWithPayments) => ({
  time: t.firstSeenAt,
  id: t.transactionId,
  merchantCode: t.merchantCode,
})

describe('pages', () => {
  it('hold 50 rows by default, and the last has no cursor', async () => {
    for (let n = 0; n < 51; n += 1) {
      await seedTransaction(rig.database, { transactionId: `T-50-${n}`, orderId: 'FIFTY' })
    }
    const first = await readPage(await list('?orderId=FIFTY'))
    expect(first.data).toHaveLength(50)
    const last = await readPage(await list(`?orderId=FIFTY&cursor=${first.nextCursor}`))
    expect([last.data.length, last.nextCursor]).toEqual([1, null])
    const exactly = await readPage(await list('?orderId=FIFTY&limit=51'))
    expect([exactly.data.length, exactly.nextCursor]).toEqual([51, null])
  })

  it('count transactions, not their payments', async () => {
    for (const id of ['1', '2', '3']) {
      await seedTransaction(rig.database, { transactionId: `T-MANY-${id}`, orderId: 'MANY' })
      for (const n of ['a', 'b', 'c']) {
        await seedPayment(rig.database, { paymentId: `${id}${n}`, transactionId: `T-MANY-${id}` })
      }
    }
    const all = await readAll(list, { orderId: 'MANY', limit: '2' })
    expect(all.map(({ payments }) => payments)).toMatchObject(
      ['3', '2', '1'].map((id) => ['a', 'b', 'c'].map((n) => ({ id: `${id}${n}` }))),
    )
  })
})

describe('a filter that finds little', () => {
  const ROWS = 12_000
  // One row in 4,000 is refunded, in the second account one in 40; all others are of payments that failed.
  beforeAll(async () => {
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, state, first_seen_at)
      select account, 'S' || n, case when n % every = 0 then 'refunded' else 'paid' end,
        timestamptz '2026-01-01 00:00Z' + n * interval '1 second'
      from (values ('RARE', 4000, ${ROWS}), ('MORE', 40, 400)) as a (account, every, rows),
        generate_series(1, rows) as n`
    await rig.database.sql`
      insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of, first_seen_at)
      select now(), merchant_code, transaction_id, transaction_id, 'FAILED', 7, 0, 0, 'QR', now(), first_seen_at
      from transactions where merchant_code = 'RARE'`
  })

  type Read = { found: string[]; pages: number; most: number }
  /** Reads every page as a client does. */
  async function readPages(
    read: (ctx: ServiceContext, after: Position | undefined) => Promise<PageRead<Position>>,
  ): Promise<Read> {
    const { drizzle, sent } = recordStatements(rig.database)
    const result: Read = { found: [], pages: 0, most: 0 }
    for (let cursor: string | null | undefined; cursor !== null; result.pages += 1) {
      const rows = await read(
        { ...rig.service.ctx, db: { ...rig.service.ctx.db, drizzle } },
        cursor === undefined ? undefined : readCursor(cursor),
      )
      const page = cutPage(
        rows,
        10,
        (row) => row,
        ({ id }) => id,
      )
      result.found.push(...page.data)
      cursor = page.nextCursor
      for (const statement of sent.splice(0)) {
        const met = await explain(rig.database, statement)
        const read = met.filter(({ index }) => index?.match(/_newest|_amount/))
        result.most = Math.max(result.most, ...read.map(({ rows }) => rows))
      }
    }
    return result
  }
  const transactions =
    (merchants: readonly string[], more: object = {}) =>
    async (ctx: ServiceContext, after: Position | undefined) => {
      const filter = { merchants, state: 'refunded' as const, ...more }
      const { rows, stoppedAt } = await listTransactions(ctx, filter, 10, after)
      return { rows: rows.map(locate), stoppedAt: stoppedAt && locate(stoppedAt) }
    }

  it('reads a bounded part of the list for each page, and finds every row once', async () => {
    const { found, pages, most } = await readPages(transactions(['RARE']))
    expect(found).toEqual(['S12000', 'S8000', 'S4000'])
    expect([pages, most]).toEqual([3, 5_000])
  })

  it('does so over several accounts, of which one stops before the other', async () => {
    const { found, most } = await readPages(transactions(['RARE', 'MORE']))
    expect(found).toHaveLength(3 + 10)
    expect(new Set(found).size).toBe(found.length)
    expect(found.slice(0, 3)).toEqual(['S12000', 'S8000', 'S4000'])
    expect(most).toBeLessThanOrEqual(2_500 + 400)
  })

  it('begins and ends with the times of the filter', async () => {
    const at = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString()
    const times = { from: at(7_999), to: at(8_002) }
    const { found, pages, most } = await readPages(transactions(['RARE'], times))
    expect([found, pages]).toEqual([['S8000'], 1])
    expect(most).toBeLessThanOrEqual(4)
  })

  it('is bounded for payments by amount, too', async () => {
    const ofAmount = async (ctx: ServiceContext, after: Position | undefined) => {
      const filter = { merchants: ['RARE'], amount: '7', status: 'SUCCESS' as const }
      const { stoppedAt } = await listPayments(ctx, filter, 10, after)
      const payment = stoppedAt?.payment
      const position = payment && { ...payment, time: payment.firstSeenAt, id: payment.paymentId }
      return { rows: [], stoppedAt: position }
    }
    const { pages, most } = await readPages(ofAmount)
    expect(pages).toBe(3)
    expect(most).toBeLessThanOrEqual(5_001)
  })
})

describe('a list of several accounts', () => {
  const ACCOUNTS = ['LIST0', 'LIST1', 'LIST2']
  // Every time occurs twice in an account, and all times and ids in each; one refund in thirteen is open.
  beforeAll(async () => {
    const { sql } = rig.database
    await sql`
      insert into transactions (merchant_code, transaction_id, currency, first_seen_at)
      select account, 'L' || n, 'VND', timestamptz '2026-01-01 00:00Z' + n / 2 * interval '1 second'
      from unnest(${ACCOUNTS}::text[]) as account, generate_series(1, 1200) as n order by n, account`
    await sql`
      insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of, first_seen_at)
      select now(), merchant_code, transaction_id, transaction_id, 'SUCCESS', 1000, 0, 0, 'QR', now(), first_seen_at
      from transactions where merchant_code = any(${ACCOUNTS})`
    await sql`
      insert into refunds (fingerprint_key_id, requested_principal, merchant_code, refund_id, transaction_id, payment_id, amount, idempotency_key,
        fingerprint, requested_by, status, attempts, due_at, requested_at)
      select 'k', 'key:k', merchant_code, md5(payment_id)::uuid, transaction_id, payment_id, 1, payment_id, '', 'test',
        s.status, 1, case when s.status not in ('succeeded', 'needs_review') then now() end, first_seen_at
      from payments, lateral (select coalesce((array['pending', 'sending', 'accepted', 'unknown',
        'needs_review'])[substr(payment_id, 2)::int % 65], 'succeeded') as status) as s
      where merchant_code = any(${ACCOUNTS})`
    await sql`
      insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, at)
      select merchant_code, transaction_id, 'duplicate_payment', '', '', first_seen_at
      from transactions where merchant_code = any(${ACCOUNTS})`
    await sql`analyze transactions, payments, refunds, discrepancies`
  })

  type Asked = { merchants: readonly string[]; limit: number; after?: Position | undefined }
  type List = (ctx: ServiceContext, asked: Asked) => Promise<Position[]>
  const listOf: Record<string, List> = {
    transactions: async (ctx, { merchants, limit, after }) =>
      (await listTransactions(ctx, { merchants }, limit, after)).rows.map(locate),
    payments: async (ctx, { merchants, limit, after }) =>
      (await listPayments(ctx, { merchants }, limit, after)).rows.map(({ payment: p }) => ({
        ...{ time: p.firstSeenAt, id: p.paymentId, merchantCode: p.merchantCode },
      })),
    refunds: async (ctx, { merchants, limit, after }) =>
      (await listRefunds(ctx, { merchants }, limit, after)).rows.map(({ refund: r }) => ({
        ...{ time: r.requestedAt, id: r.refundId, merchantCode: r.merchantCode },
      })),
    discrepancies: async (ctx, { merchants, limit, after }) =>
      (await listDiscrepancies(ctx, { merchants }, limit, after)).rows.map((one) => ({
        ...{ time: one.at, id: String(one.id), merchantCode: one.merchantCode },
      })),
  }
  const order: Record<string, [string, string]> = {
    transactions: ['first_seen_at', 'transaction_id'],
    payments: ['first_seen_at', 'payment_id'],
    refunds: ['requested_at', 'refund_id'],
    discrepancies: ['at', 'id'],
  }
  const LISTS = Object.entries(listOf)
  const cut = (rows: readonly Position[], limit: number) =>
    cutPage(
      { rows },
      limit,
      (row) => row,
      (row) => row,
    )
  const record = () => {
    const { drizzle, sent } = recordStatements(rig.database)
    return { ctx: { ...rig.service.ctx, db: { ...rig.service.ctx.db, drizzle } }, sent }
  }

  it.each(LISTS)('%s: a page reads a page of each, by the index', async (table, read) => {
    const { ctx, sent } = record()
    for (const merchants of [ACCOUNTS, ['LIST1']]) {
      const first = await read(ctx, { merchants, limit: 50 })
      expect(first).toHaveLength(51)
      await read(ctx, { merchants, limit: 50, after: first[49] })
      for (const statement of sent.splice(0)) {
        const met = await explain(rig.database, statement)
        const reads = met.filter((one) => one.table === table)
        expect(reads).toMatchObject([{ index: `${table}_newest` }])
        // The row that the page begins behind may be read as well, for each account.
        expect(reads[0]?.rows).toBeLessThanOrEqual(52 * merchants.length)
      }
    }
  })

  // A page of a hundred ends between rows that differ only in their account.
  it.each(LISTS)('%s: has every row once, in order', async (table, read) => {
    const { ctx } = rig.service
    const [time = '', id = ''] = order[table] ?? []
    const by = [time, id, 'merchant_code'].map((column) => `${table}.${column} desc`).join()
    const wanted = await rig.database.sql.unsafe(`
      select ${id}::text as id, merchant_code as "merchantCode" from ${table}
      where merchant_code like 'LIST%' order by ${by}`)
    const found: Position[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const after = cursor === undefined ? undefined : readCursor(cursor)
      const page = cut(await read(ctx, { merchants: ACCOUNTS, limit: 100, after }), 100)
      expect(page.data).toHaveLength(100)
      found.push(...page.data)
      expect(found.length).toBeLessThanOrEqual(wanted.length)
      cursor = page.nextCursor
    }
    expect(found.map(({ id, merchantCode }) => ({ id, merchantCode }))).toEqual([...wanted])
  })

  it('uses few distinct statements, whatever the limit and the number of accounts', async () => {
    const { ctx, sent } = record()
    for (const [, read] of LISTS) {
      for (const merchants of [ACCOUNTS, ACCOUNTS.slice(1)]) {
        for (const limit of [1, 9, 10, 11, 49, 50, 51, 99, 100, 101, 199, 200]) {
          const page = cut(await read(ctx, { merchants, limit }), limit)
          expect([page.data.length, page.nextCursor]).toEqual([limit, expect.any(String)])
        }
      }
      expect(new Set(sent.splice(0).map(({ query }) => query)).size).toBe(4)
    }
  })

  it.each(['pending', 'accepted', 'unknown', 'needs_review'] as const)(
    'reads refunds that are %s by the index of open ones',
    async (status) => {
      const { ctx, sent } = record()
      for (const merchants of [ACCOUNTS, ['LIST1']]) {
        await listRefunds(ctx, { merchants, status }, 50, undefined)
        for (const statement of sent.splice(0)) {
          const met = await explain(rig.database, statement)
          const reads = met.filter(({ table }) => table === 'refunds')
          expect(reads).toMatchObject([{ index: 'refunds_open' }])
        }
      }
    },
  )
})

const cursorOf = (...parts: unknown[]) =>
  `0.${Buffer.from(JSON.stringify(parts)).toString('base64url')}`
const TIME = '2026-03-01 09:00:00+00'

describe('a parameter that does not fit is refused by name', () => {
  it.each([
    ['limit', ['0', '201', '-1', '1.5', 'many', '', '1e2', '0x10']],
    [
      'cursor',
      [
        ...['', 'abc', '!!!', 'x'.repeat(2000), cursorOf(TIME, 'T', 'M').slice(2)],
        `-1.${cursorOf(TIME, 'T', 'M').slice(2)}`,
        ...[cursorOf(TIME), cursorOf(TIME, 'T', 7), cursorOf(TIME, 'T', 'M', 'more')],
        ...['9999-99-99 99:99:99+00', '2026-02-31 09:00:00+00', '0000-01-01 09:00:00+00'].map(
          (time) => cursorOf(time, 'T', 'M'),
        ),
        ...[cursorOf(TIME, 'T\0', 'M'), cursorOf(TIME, 'T', 'M\0')],
        ...[`${cursorOf(TIME, 'T', 'M')}!`, `${cursorOf(TIME, 'T', 'M')}=`],
      ],
    ],
    [
      'from',
      [
        ...['yesterday', '2026-11-21', '2026-11-21T09:00:00', '2026-02-30T09:00:00Z', ''],
        ...['2026-11-21T25:00:00Z', '0000-01-01T00:00:00Z', '2026-11-21T09:00:00+23:00'],
        ...['2026-11-21T09:00:00-16:00', `2026-11-21T09:00:00.${'1'.repeat(200)}Z`],
      ],
    ],
    ['to', ['now', '0000-01-01T00:00:00Z']],
    ['orderId', ['', ' ', 'a\u0000', 'x'.repeat(129)]],
    ['unknown', ['1']],
    ['__proto__', ['1']],
  ])('%s', async (name, values) => {
    for (const value of values) {
      const problem = await expectInvalid(await list(`?${name}=${encodeURIComponent(value)}`), name)
      expect(problem.errors?.[0]?.message).not.toBe('')
    }
  })

  it.each(['61', '-1', '1.5', 'long', '999', ''])('wait=%s of a transaction', async (wait) => {
    await expectInvalid(await rig.api(`/v1/transactions/T-1?wait=${wait}`), 'wait')
  })

  it('takes the widest times, offsets and limits that are allowed', async () => {
    for (const query of [
      '?from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59.999999999Z',
      '?from=2026-11-21T09:00:00%2B15:59&to=2026-11-21T09:00:00-15:59',
      '?limit=200',
    ]) {
      expect((await list(query)).status).toBe(200)
    }
  })
})
