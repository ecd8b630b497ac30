import { Hono } from 'hono'
import { narrowMerchants } from '../../access/authenticate.ts'
import { DomainError } from '../../errors.ts'
import { Id } from '../../http/fields.ts'
import { Notice } from '../../platform/html/components.tsx'
import { listTransactions } from '../../transactions/find-transactions.ts'
import { requestSync } from '../../transactions/request-sync.ts'
import type { ConsoleContext } from '../context.ts'
import { toRange } from '../days.ts'
import type { ConsoleEnv, ConsoleRequest } from '../env.ts'
import { readForm } from '../forms/protect-forms.ts'
import { renderConsolePage } from '../layout.tsx'
import { storyPath } from '../paths.ts'
import { requireScope } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import { count, t, useView } from '../view.ts'
import { chooseTarget } from './choose-target.ts'
import { findHits, MAX_HITS } from './find-hits.ts'
import { NothingFound } from './nothing-found.tsx'
import { type ReadQuery, readQuery, type SearchQuery } from './read-query.ts'
import { Newest, Results } from './results.tsx'
import { SearchForm } from './search-form.tsx'

/** Transactions shown before anything is searched. */
const MAX_NEWEST = 25

/** Serves the search, and asks the gateway about what it does not find. */
export function searchRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()

  app.get('/console', async (c) => {
    requireScope(c, 'payments:read')
    const { query, problems } = readQuery(c.req.query())
    const merchants = narrowMerchants(c.get('access'), query.account)
    const { q } = query
    if (q === undefined || problems.q !== undefined) {
      return await respondNewest(ctx, c, merchants, { query, problems })
    }
    return await respondHits(ctx, c, merchants, { query: { ...query, q }, problems })
  })

  app.post('/console/transactions', async (c) => {
    requireScope(c, 'payments:read')
    const { transactionId, merchantCode = '' } = await readForm(c)
    const id = Id.safeParse(transactionId)
    const access = c.get('access')
    const merchants = narrowMerchants(access, merchantCode)
    if (!id.success || merchants.length === 0) {
      throw new DomainError('transaction_not_found', 'No such transaction or account')
    }
    const owner = await requestSync(ctx, access, merchants, id.data)
    const key = { merchantCode: owner, transactionId: id.data }
    return redirectWith(c, storyPath(key), 'asked')
  })
  return app
}

async function respondNewest(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  merchants: readonly string[],
  { query, problems }: ReadQuery,
) {
  const { from, to } = toRange(useView().zone, query)
  const filter = { merchants, state: query.state, from, to }
  const { rows, stoppedAt } = await ctx.reads.run(c.get('access').chainId, (db) =>
    listTransactions(db, filter, MAX_NEWEST, undefined),
  )
  const newest = <Newest rows={rows.slice(0, MAX_NEWEST)} isShortened={stoppedAt !== undefined} />
  return renderSearch(c, problems, newest)
}

async function respondHits(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  merchants: readonly string[],
  { query, problems }: ReadQuery & { query: SearchQuery & { q: string } },
) {
  const access = c.get('access')
  const { zone } = useView()
  const hits = await ctx.reads.run(access.chainId, (database) =>
    findHits({ ...ctx, ...database, zone }, access, merchants, query),
  )
  const { shown, ignoredFilters, leftOut, isCut } = hits
  const target = chooseTarget(shown)
  if (target !== undefined) {
    return redirectWith(c, target, ignoredFilters ? 'filtersIgnored' : undefined)
  }
  if (shown.length === 0) {
    const nothing = <NothingFound c={c} text={query.q} leftOut={leftOut} accounts={merchants} />
    return renderSearch(c, problems, nothing)
  }
  return renderSearch(
    c,
    problems,
    <>
      <p>{count('search.found', shown.length)}</p>
      {ignoredFilters ? <Notice tone="warn">{t('search.ignored')}</Notice> : null}
      {leftOut ? <Notice tone="soft">{t('search.filtered')}</Notice> : null}
      {isCut ? <Notice tone="soft">{t('search.cut', { count: MAX_HITS })}</Notice> : null}
      <Results hits={shown} />
    </>,
  )
}

function renderSearch(
  c: ConsoleRequest,
  problems: ReadQuery['problems'],
  results: ReturnType<typeof Results>,
) {
  const accounts = c.get('access').merchants
  const status = Object.keys(problems).length > 0 ? 422 : 200
  return renderConsolePage(
    c,
    { title: t('frame.pages.search'), current: 'search', status },
    <>
      <SearchForm given={c.req.query()} problems={problems} accounts={accounts} />
      {results}
    </>,
  )
}
