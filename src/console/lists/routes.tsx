import { Hono } from 'hono'
import { narrowMerchants } from '../../access/authenticate.ts'
import { DomainError } from '../../errors.ts'
import { DEFAULT_LIMIT, readCursor, respondCsv, writeCsv } from '../../http/list.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv, ConsoleRequest } from '../env.ts'
import { renderConsolePage } from '../layout.tsx'
import { requireScope } from '../permissions.ts'
import { TEXTS } from '../texts/en.ts'
import { DISCREPANCIES } from './discrepancies.tsx'
import type { ListKind } from './list-kind.ts'
import { ListPage } from './list-page.tsx'
import { PAYMENTS } from './payments.tsx'
import { readFilters } from './read-filters.ts'
import { REFUNDS } from './refunds.tsx'
import { TRANSACTIONS } from './transactions.tsx'

/** Serves the lists, as pages and as the CSV that the API writes. */
export function listRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get('/console/transactions', (c) => respondList(ctx, c, TRANSACTIONS))
  app.get('/console/payments', (c) => respondList(ctx, c, PAYMENTS))
  app.get('/console/refunds', (c) => respondList(ctx, c, REFUNDS))
  app.get('/console/discrepancies', (c) => respondList(ctx, c, DISCREPANCIES))
  return app
}

async function respondList<T extends object>(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  kind: ListKind<T>,
): Promise<Response> {
  requireScope(c, kind.scope)
  const access = c.get('access')
  const given = c.req.query()
  if (!['csv', undefined].includes(given.format)) {
    throw new DomainError('invalid_request', TEXTS.lists.problems.format)
  }
  const { values, problems } = readFilters(kind.filters, given)
  const merchants = narrowMerchants(access, given.account || undefined)
  const after = readCursor(given.cursor, kind.idForm)
  const isWrong = Object.keys(problems).length > 0
  // A filter that cannot be read leaves everything out: more than was asked for would be misleading.
  const page = isWrong
    ? { data: [], nextCursor: null }
    : await ctx.reads.run(access.chainId, (database) =>
        kind.load({ ...ctx, ...database }, { merchants, values, limit: DEFAULT_LIMIT, after }),
      )
  if (given.format === 'csv' && !isWrong) {
    c.header('content-disposition', `attachment; filename="${kind.name}.csv"`)
    return respondCsv(c, writeCsv(kind.schema, page.data), page.nextCursor, 'cursor')
  }
  const accounts = access.merchants
  return await renderConsolePage(
    c,
    { title: TEXTS.lists.titles[kind.name], current: kind.name, status: isWrong ? 422 : 200 },
    <ListPage kind={kind} given={given} problems={problems} accounts={accounts} page={page} />,
  )
}
