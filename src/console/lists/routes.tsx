import type { z } from '@hono/zod-openapi'
import { Hono } from 'hono'
import { readListing, walkListing } from '../../access/listing.ts'
import { DomainError } from '../../errors.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv, ConsoleRequest } from '../env.ts'
import { renderConsolePage } from '../layout.tsx'
import { requireScope } from '../permissions.ts'
import { t } from '../view.ts'
import { MAX_XLSX_ROWS, respondCsvFile, respondXlsxFile } from './export.ts'
import { ListBody, PAGE_ROWS } from './list-page.tsx'
import {
  discrepancyList,
  type ListPage,
  paymentList,
  refundList,
  transactionList,
} from './lists.tsx'
import { readFilters } from './read-filters.ts'

/** Serves the lists: as pages, and as files of all that the filters leave. */
export function listRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get('/console/transactions', (c) => respondList(ctx, c, transactionList))
  app.get('/console/payments', (c) => respondList(ctx, c, paymentList))
  app.get('/console/refunds', (c) => respondList(ctx, c, refundList))
  app.get('/console/discrepancies', (c) => respondList(ctx, c, discrepancyList))
  return app
}

async function respondList<Query extends z.ZodRawShape, Row extends object>(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  list: ListPage<Query, Row>,
): Promise<Response> {
  const { listing, name } = list
  requireScope(c, listing.scope)
  const access = c.get('access')
  const given = c.req.query()
  const { format, cursor } = given
  if (!['csv', 'xlsx', undefined].includes(format)) {
    throw new DomainError('invalid_request', t('lists.problems.format'))
  }
  const { asked, problems } = readFilters(listing, given)
  const merchantCode = given.account || undefined
  if (asked && format !== undefined) {
    const pages = walkListing(ctx, access, listing, { ...asked, merchantCode })
    if (format === 'csv') return await respondCsvFile(ctx.log, c, list, pages)
    const response = await respondXlsxFile(c, list, pages)
    if (response) return response
    throw new DomainError('invalid_request', t('lists.tooMany', { most: String(MAX_XLSX_ROWS) }))
  }
  // A filter that cannot be read leaves everything out: more than was asked for would be misleading.
  const page = asked
    ? await readListing(ctx, access, listing, { ...asked, merchantCode, limit: PAGE_ROWS, cursor })
    : { data: [], nextCursor: null }
  return await renderConsolePage(
    c,
    { title: t(`lists.titles.${name}`), current: name, status: asked ? 200 : 422 },
    <ListBody {...{ list, given, problems, page }} accounts={access.merchants} />,
  )
}
