import { z } from 'zod'
import { narrowMerchants } from '../access/authenticate.ts'
import { listDeciders } from '../access/principal.ts'
import { annotateDiscrepancy, resolveDiscrepancy } from '../decisions/discrepancies.ts'
import { findMayEnd, type MayEnd } from '../decisions/second-person.ts'
import { type DiscrepancyRow, rateKind } from '../discrepancies/kinds.ts'
import { type DiscrepancyView, showDiscrepancy } from '../discrepancies/routes.ts'
import { findDiscrepancy } from '../discrepancies/store.ts'
import { compareAmounts } from '../money.ts'
import { Card, Facts, Identifier } from '../platform/html/components.tsx'
import { readGrowth } from '../refunds/evidence.ts'
import { type ExternalRecord, listExternalRefunds } from '../refunds/external-view.ts'
import { findTransaction } from '../transactions/find-transaction.ts'
import { Annotations, annotations } from './annotate.tsx'
import { Time } from './cells.tsx'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { ExternalCard, explainDiscrepancy, externalAction, OwnRefund } from './external.tsx'
import { ActionForm, TextArea } from './forms.tsx'
import { definePage, parseFields, requireText } from './page.ts'
import { discrepancyPath, refundPagePath, storyPath } from './paths.ts'
import { can, count, formatMoney, listTexts, t } from './view.ts'
import { nameKind, nameSource } from './words.ts'

const ResolutionFields = z.object({
  reason: requireText('decisions.problems.reason'),
  shownAmount: z
    .string()
    .regex(/^-?\d{1,18}(\.\d{1,4})?$/)
    .optional()
    .catch(undefined),
})

const pathOf = ({ view }: ShownDiscrepancyPage) => discrepancyPath(view.merchantCode, view.id)

export const discrepancyPage = definePage<DiscrepancyRow>({
  path: '/console/discrepancies/:merchant/:id',
  scope: 'ops',
  load: findPathDiscrepancy,
  async show(ctx, c, row) {
    const shown = await readDiscrepancyPage(ctx, c, row)
    const body = <Body shown={shown} named={c.req.query('external')} />
    return { title: nameKind(row.kind), current: 'tasks', body }
  },
  actions: {
    resolution: {
      explain: explainDiscrepancy,
      async run({ ctx, access, of, fields }) {
        await resolveDiscrepancy(ctx, access, of, parseFields(ResolutionFields, fields))
        return { notice: 'discrepancyResolved' }
      },
    },
    external: externalAction,
    ...annotations<DiscrepancyRow>({
      merchantOf: ({ merchantCode }) => merchantCode,
      annotate: ({ ctx, access, of }, given) => annotateDiscrepancy(ctx, access, of, given),
    }),
  },
  async describe(ctx, c) {
    const { resolvedAt, resolvedBy: name, resolution } = await findPathDiscrepancy(ctx, c)
    if (resolvedAt === null) return []
    const reason = resolution ?? ''
    return [
      name === null
        ? t('decisions.happened.agreed')
        : t('decisions.happened.resolved', { name, reason }),
    ]
  },
})

function Body({ shown, named }: { shown: ShownDiscrepancyPage; named: string | undefined }) {
  const { row } = shown
  const help = Object.fromEntries(listTexts(`discrepancyHelp.${row.kind}`))
  const { meaning, steps } = {
    ...Object.fromEntries(listTexts('discrepancyHelp.unknown')),
    ...help,
  }
  const path = pathOf(shown)
  const isClosed = row.resolvedAt !== null
  return (
    <>
      <Card title={t('discrepancyPage.meaning')}>
        <p>{meaning}</p>
        <h3>{t('discrepancyPage.steps')}</h3>
        <p>{steps}</p>
      </Card>
      <Card title={t('discrepancyPage.sides')}>
        <div class="sides">
          {(['ours', 'theirs'] as const).map((side) => (
            <div>
              <h3>{nameSource(shown.view[side].source)}</h3>
              <p>{row[side]}</p>
            </div>
          ))}
        </div>
      </Card>
      <FactsCard shown={shown} />
      {shown.external.length > 0 ? <ExternalCard {...{ path, shown, named }} /> : null}
      {isClosed ? null : <ResolveCard shown={shown} />}
      <Annotations {...{ path, deciders: shown.deciders, review: row, isClosed }} />
    </>
  )
}

function FactsCard({ shown: { view } }: { shown: ShownDiscrepancyPage }) {
  const { merchantCode, transactionId, paymentId, refundId } = view
  const refund =
    refundId !== null && can('refunds:read') ? (
      <a href={refundPagePath(merchantCode, refundId)}>{t('discrepancyPage.openRefund')}</a>
    ) : null
  const rows = [
    [t('field.state'), <State view={view} />],
    [t('field.severity'), t(`discrepancyPage.severities.${rateKind(view.kind)}`)],
    [t('field.account'), merchantCode],
    [t('field.transaction'), <a href={storyPath(view)}>{transactionId}</a>],
    [t('field.order'), view.orderId],
    [t('field.payment'), paymentId === null ? null : <Identifier>{paymentId}</Identifier>],
    [t('field.refund'), refund],
    [t('field.firstSeen'), <Time iso={view.firstSeenAt} />],
    [t('field.lastSeen'), <Time iso={view.lastSeenAt} />],
    [t('field.observed'), count('discrepancyPage.facts.times', view.times)],
  ] as const
  return (
    <Card title={t('discrepancyPage.about')}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
    </Card>
  )
}

function State({ view: { resolvedAt, resolution } }: { view: ShownDiscrepancyPage['view'] }) {
  if (resolvedAt === null) return <>{t('lists.open')}</>
  const how = resolution
    ? t('discrepancyPage.resolvedBy', { name: resolution.by, reason: resolution.reason })
    : t('discrepancyPage.agreed')
  return (
    <>
      {t('lists.resolved')} {how} <Time iso={resolvedAt} />
    </>
  )
}

function ResolveCard({ shown }: { shown: ShownDiscrepancyPage }) {
  const { amount, mayResolve, view } = shown
  const effect = describeEffect(shown)
  return (
    <Card title={t('discrepancyPage.resolve.title')} id="resolve">
      <OwnRefund mayEnd={mayResolve} />
      {mayResolve === 'another' ? null : (
        <>
          <p>{t('discrepancyPage.resolve.lead')}</p>
          {effect === undefined ? null : <p>{effect}</p>}
          {view.refundId === null ? null : <p>{t('discrepancyPage.resolve.refundFirst')}</p>}
          <ActionForm
            action={`${pathOf(shown)}/resolution`}
            fields={amount === undefined ? {} : { shownAmount: amount }}
            submit={t('discrepancyPage.resolve.submit')}
          >
            {(field) => <TextArea {...field('reason', t('field.reason'))} required />}
          </ActionForm>
        </>
      )}
    </Card>
  )
}

function describeEffect({ view, amount, currency }: ShownDiscrepancyPage): string | undefined {
  if (view.kind === 'payment_unreadable') return t('discrepancyPage.resolve.setsAside')
  if (amount === undefined) return undefined
  return compareAmounts(amount, '0') > 0
    ? t('discrepancyPage.resolve.enters', { amount: formatMoney(amount, currency) })
    : t('discrepancyPage.resolve.entersNothing')
}

/** A payment has few refunds made elsewhere; more are listed in the story of the transaction. */
const MAX_EXTERNAL = 20

type ShownDiscrepancyPage = {
  row: DiscrepancyRow
  view: DiscrepancyView
  currency: string | null
  /** Of `unexplained_growth`: the amount that resolving it enters (decimal string). */
  amount: string | undefined
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
async function findPathDiscrepancy({ sql }: ConsoleContext, c: ConsoleRequest) {
  const { merchant, id = '' } = c.req.param()
  return await findDiscrepancy(sql, narrowMerchants(c.get('access'), merchant), id)
}

async function readDiscrepancyPage(
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
async function readCurrency(ctx: ConsoleContext, row: DiscrepancyRow): Promise<string | null> {
  const { merchantCode, transactionId } = row
  const found = await findTransaction(ctx, [merchantCode], transactionId).catch(() => undefined)
  return found?.transaction.currency ?? null
}
