import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { Id } from '../http/fields.ts'
import { Card, Notice } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import { readRefunds } from '../refunds/events.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { STATES } from '../refunds/lifecycle.ts'
import { findObjects, type SearchHit } from '../search.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import { requestSync } from '../transactions/request-sync.ts'
import type { TransactionWithPayments } from '../transactions/types.ts'
import { List, type ListColumn, link, money, state, TableCard, text, time } from './cells.tsx'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { Form, listOptions, Select } from './forms.tsx'
import { pageSaying } from './kept.ts'
import { renderConsolePage } from './layout.tsx'
import type { Mount } from './page.ts'
import { nameAnchor, refundPagePath, storyPath } from './paths.ts'
import { readFields } from './session.ts'
import { showTasks } from './tasks.tsx'
import { can, count, listTexts, requireScope, t, usePerson } from './view.ts'
import { signPayment, signRefund, signTransaction } from './words.ts'

const MAX_HITS = 60

type Hit = SearchHit & {
  of: TransactionWithPayments['transaction']
  payment?: TransactionWithPayments['payments'][number] | undefined
  refund?: RefundRecord['refund'] | undefined
  at: string
  isExact: boolean
}

export const searchRoutes: Mount = (app, ctx) => {
  app
    .get('/console', async (c) => {
      const q = c.req.query('q')?.trim() ?? ''
      return q === '' ? await showTasks(ctx, c) : await showSearch(ctx, c, q)
    })
    .post('/console/transactions', async (c) => {
      requireScope(c, 'payments:read')
      const { transactionId, merchantCode = '' } = readFields(c)
      const id = Id.safeParse(transactionId)
      const access = c.get('access')
      const merchants = narrowMerchants(access, merchantCode)
      if (!id.success || merchants.length === 0) {
        throw new DomainError('transaction_not_found', 'No such transaction or account')
      }
      const owner = await requestSync(ctx, access, merchants, id.data)
      const key = { merchantCode: owner, transactionId: id.data }
      return c.redirect(pageSaying(ctx, usePerson().id, storyPath(key), 'asked'), 303)
    })
}

async function showSearch(ctx: ConsoleContext, c: ConsoleRequest, q: string) {
  requireScope(c, 'payments:read')
  const access = c.get('access')
  const isText = Id.safeParse(q).success
  const hits = isText ? await findHits(ctx, access, q) : []
  const target = chooseTarget(hits)
  if (target !== undefined) return c.redirect(target, 303)
  return await renderConsolePage(
    c,
    { title: t('search.title'), status: isText ? 200 : 422 },
    <>
      {isText ? null : <Notice tone="bad">{t('lists.problems.text')}</Notice>}
      {isText && hits.length === 0 ? <NothingFound q={q} /> : null}
      {hits.length > 0 ? <p>{count('search.found', hits.length)}</p> : null}
      {hits.length === MAX_HITS ? (
        <Notice tone="soft">{t('search.cut', { count: MAX_HITS })}</Notice>
      ) : null}
      {(['transaction', 'payment', 'refund'] as const).map((kind) => (
        <Group title={t(`frame.pages.${kind}s`)} hits={hits.filter(({ type }) => type === kind)} />
      ))}
    </>,
  )
}

/** Leads to the only hit, or to the only transaction of all exact hits. Otherwise the person has to choose. */
function chooseTarget(hits: readonly Hit[]): string | undefined {
  const exact = hits.filter(({ isExact }) => isExact)
  const candidates = exact.length > 0 ? exact : hits
  const [first] = candidates
  if (!first) return undefined
  if (candidates.length === 1) return pathOf(first)
  const transactions = new Set(candidates.map(formatTransactionKey))
  return exact.length > 0 && transactions.size === 1 ? storyPath(first) : undefined
}

function pathOf(hit: Hit): string {
  // The story shows only the newest refunds.
  if (hit.type === 'refund') return refundPagePath(hit.merchantCode, hit.id)
  return storyPath(hit, hit.type === 'payment' ? nameAnchor('payment', hit.id) : undefined)
}

const COLUMNS: readonly ListColumn<Hit>[] = [
  link('id', (hit) => [hit.id, pathOf(hit)]),
  text('matched', ({ matched }) => t(`field.${matched}`)),
  state('state', ({ of, payment, refund }) =>
    refund
      ? signRefund(STATES[refund.status].shown)
      : payment
        ? signPayment(payment.status)
        : signTransaction(of),
  ),
  money('amount', ({ of, payment, refund }) => [
    (refund ?? payment)?.amount ?? of.paidAmount,
    of.currency,
  ]),
  text('order', ({ of }) => of.orderId),
  text('account', ({ merchantCode }) => merchantCode, { wide: true }),
  time('time', ({ at }) => at),
]

function Group({ title, hits }: { title: string; hits: readonly Hit[] }) {
  if (hits.length === 0) return null
  return <TableCard {...{ title, note: hits.length, columns: COLUMNS, rows: hits }} />
}

function NothingFound({ q }: { q: string }) {
  const searched = can('refunds:read') ? 'searchedAll' : 'searched'
  return (
    <>
      <Card title={t('search.none.title', { query: q })}>
        <p>{t(`search.none.${searched}`)}</p>
        <List items={listTexts('search.none.advice').map(([, advice]) => advice)} />
      </Card>
      {looksLikeId(q) ? <Ask id={q} /> : null}
    </>
  )
}

/** Whether a text may be the id of a transaction, which is neither a sentence nor a short number. */
const looksLikeId = (q: string) => /^[A-Za-z0-9][\w.:-]{7,127}$/.test(q) && /\d/.test(q)

function Ask({ id }: { id: string }) {
  const accounts = usePerson().access.merchants
  const [only, second] = accounts
  const fields = { transactionId: id, ...(second || !only ? {} : { merchantCode: only }) }
  return (
    <Card title={t('search.none.ask')}>
      <p>{t('search.none.askWhy')}</p>
      <Form action="/console/transactions" fields={fields}>
        {second === undefined ? null : (
          <Select
            {...{ name: 'merchantCode', label: t('field.account'), value: only, required: true }}
            options={listOptions(accounts)}
          />
        )}
        <button type="submit">{t('search.none.askNow')}</button>
      </Form>
    </Card>
  )
}

async function findHits(
  ctx: ConsoleContext,
  { scopes, merchants, chainId }: Access,
  q: string,
): Promise<Hit[]> {
  const withRefunds = scopes.includes('refunds:read')
  return await ctx.db.reads.run(chainId, async ({ sql }) => {
    const found = await findObjects(sql, merchants, q, { withRefunds, limit: MAX_HITS })
    const ofRefunds = found.filter(({ type }) => type === 'refund')
    const listIds = (code: string) =>
      ofRefunds.filter(({ merchantCode }) => merchantCode === code).map(({ id }) => id)
    const [transactions, ...records] = await Promise.all([
      readTransactions(sql, found),
      ...merchants.map((code) => readRefunds(sql, code, listIds(code))),
    ])
    const refunds = records.flat().map(({ refund }) => refund)
    return found.flatMap(({ rank, ...hit }) => {
      const of = transactions.get(formatTransactionKey(hit))
      if (!of) return []
      const { type, id, merchantCode } = hit
      const payment =
        type === 'payment' ? of.payments.find(({ paymentId }) => paymentId === id) : undefined
      const refund = refunds.find(
        (one) => type === 'refund' && one.refundId === id && one.merchantCode === merchantCode,
      )
      const at = toIso(refund?.requestedAt ?? payment?.firstSeenAt ?? of.transaction.firstSeenAt)
      return [{ ...hit, of: of.transaction, payment, refund, at, isExact: rank === 0 }]
    })
  })
}
