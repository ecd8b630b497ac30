import { narrowMerchants } from '../access/authenticate.ts'
import { listDeciders } from '../access/principal.ts'
import { findMayEnd, type MayEnd } from '../decisions/second-person.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { type DiscrepancyView, showDiscrepancy } from '../discrepancies/routes.ts'
import { findDiscrepancy } from '../discrepancies/store.ts'
import { readGrowth } from '../refunds/evidence.ts'
import { type ExternalRecord, listExternalRefunds } from '../refunds/external-view.ts'
import { findTransaction } from '../transactions/find-transaction.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'

/** A payment has few refunds made elsewhere; more are listed in the story of the transaction. */
const MAX_EXTERNAL = 20

/** Everything the page of a discrepancy shows. */
export type ShownDiscrepancyPage = {
  row: DiscrepancyRow
  view: DiscrepancyView
  currency: string | null
  /** Of `unexplained_growth`: the amount that resolving it enters (decimal string). */
  amount: string | undefined
  /** Refunds of the payment made elsewhere. */
  external: ExternalRecord[]
  deciders: string[]
  /** Whether the person may resolve it, and decide the refunds made elsewhere: what holds their own refunds back is up to another. */
  mayResolve: MayEnd
  mayDecideExternal: MayEnd
}

/**
 * Finds the discrepancy in the path, of an account that the person may see.
 * @throws DomainError `discrepancy_not_found`
 */
export async function findPathDiscrepancy(
  { sql }: ConsoleContext,
  c: ConsoleRequest,
): Promise<DiscrepancyRow> {
  const { merchant, id = '' } = c.req.param()
  return await findDiscrepancy(sql, narrowMerchants(c.get('access'), merchant), id)
}

/** Reads everything the page of a discrepancy shows. */
export async function readDiscrepancyPage(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  row: DiscrepancyRow,
): Promise<ShownDiscrepancyPage> {
  const access = c.get('access')
  const { merchantCode, paymentId, kind } = row
  const payment = paymentId === null ? undefined : { merchantCode, paymentId }
  const entersGrowth = kind === 'unexplained_growth' && row.resolvedAt === null
  const [currency, growth, external, deciders, mayResolve, mayDecideExternal] = await Promise.all([
    readCurrency(ctx, row),
    payment && entersGrowth ? readGrowth(ctx.sql, payment) : undefined,
    payment ? listExternalRefunds(ctx, payment, MAX_EXTERNAL, undefined) : [],
    listDeciders(ctx.sql, merchantCode),
    findMayEnd(ctx.sql, access, row),
    findMayEnd(ctx.sql, access, { merchantCode, paymentId, refundId: null }),
  ])
  const amount = entersGrowth ? (growth?.unexplained ?? '0') : undefined
  const view = showDiscrepancy(row)
  const shown = { row, view, currency, amount, external: external.slice(0, MAX_EXTERNAL), deciders }
  return { ...shown, mayResolve, mayDecideExternal }
}

/** A discrepancy may be about a transaction that is not known. */
async function readCurrency(
  ctx: ConsoleContext,
  { merchantCode, transactionId }: DiscrepancyRow,
): Promise<string | null> {
  const found = await findTransaction(ctx, [merchantCode], transactionId).catch(() => undefined)
  return found?.transaction.currency ?? null
}
