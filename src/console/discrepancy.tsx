import { z } from 'zod'
import { narrowMerchants } from '../access/authenticate.ts'
import { listDeciders } from '../access/principal.ts'
import { annotateDiscrepancy, resolveDiscrepancy } from '../decisions/discrepancies.ts'
import { findMayEnd } from '../decisions/second-person.ts'
import { type DiscrepancyRow, rateKind } from '../discrepancies/kinds.ts'
import { showDiscrepancy } from '../discrepancies/routes.ts'
import { findDiscrepancy } from '../discrepancies/store.ts'
import { isUuid } from '../http/fields.ts'
import { compareAmounts } from '../money.ts'
import { Card, Identifier } from '../platform/html/components.tsx'
import { readGrowth } from '../refunds/evidence.ts'
import { listExternalToDecide } from '../refunds/external-view.ts'
import { findTransaction } from '../transactions/find-transaction.ts'
import { Annotations, annotations } from './annotate.tsx'
import { FieldFacts, Prose, Time } from './cells.tsx'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { ExternalCard, externalAction, OwnRefund } from './external.tsx'
import { FormCard, TextArea } from './forms.tsx'
import { definePage, explainHoldsBack, parseFields, requireText } from './page.ts'
import { discrepancyPath, refundPagePath, storyPath } from './paths.ts'
import { can, count, formatMoney, listTexts, say, t, useKept } from './view.ts'
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
    return { title: nameKind(row.kind), current: 'tasks', body: <Body shown={shown} /> }
  },
  actions: {
    resolution: {
      explain: explainHoldsBack,
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
})

function Body({ shown }: { shown: ShownDiscrepancyPage }) {
  const { row, view, external, named, mayDecideExternal: mayDecide, deciders } = shown
  const { meaning, steps } = {
    ...Object.fromEntries(listTexts('discrepancyHelp.unknown')),
    ...Object.fromEntries(listTexts(`discrepancyHelp.${row.kind}`)),
  }
  const path = pathOf(shown)
  const isClosed = row.resolvedAt !== null
  return (
    <>
      <Card title={t('discrepancyPage.meaning')}>
        <p>{meaning}</p>
        <h3>{t('field.runbook')}</h3>
        <p>{steps}</p>
      </Card>
      <Card title={t('discrepancyPage.sides')}>
        <div class="sides">
          {(['ours', 'theirs'] as const).map((side) => (
            <div>
              <h3>{nameSource(view[side].source)}</h3>
              <p>
                <Prose of={say(row[side])} />
              </p>
            </div>
          ))}
        </div>
      </Card>
      <FactsCard shown={shown} />
      {external.length > 0 && (
        <ExternalCard
          {...{ path, row, mayDecide, named, external: external.slice(0, MAX_EXTERNAL) }}
          hasMore={external.length > MAX_EXTERNAL}
        />
      )}
      {isClosed ? null : <ResolveCard shown={shown} />}
      <Annotations {...{ path, deciders, review: row, isClosed }} />
    </>
  )
}

function FactsCard({ shown: { view } }: { shown: ShownDiscrepancyPage }) {
  const { merchantCode, transactionId, paymentId, refundId } = view
  const refund = refundId !== null && can('refunds:read') && (
    <a href={refundPagePath(merchantCode, refundId)}>{t('discrepancyPage.openRefund')}</a>
  )
  return (
    <Card title={t('discrepancyPage.about')}>
      <FieldFacts
        of={{
          state: <State view={view} />,
          severity: t(`discrepancyPage.severities.${rateKind(view.kind)}`),
          account: merchantCode,
          transaction: <a href={storyPath(view)}>{transactionId}</a>,
          order: view.orderId,
          payment: paymentId && <Identifier>{paymentId}</Identifier>,
          refund: refund || null,
          firstSeen: <Time iso={view.firstSeenAt} />,
          lastSeen: <Time iso={view.lastSeenAt} />,
          observed: count('discrepancyPage.facts.times', view.times),
        }}
      />
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
      {t('lists.resolved')} <Prose of={how} /> <Time iso={resolvedAt} />
    </>
  )
}

function ResolveCard({ shown }: { shown: ShownDiscrepancyPage }) {
  const { amount, mayResolve, view } = shown
  const card = { title: t('discrepancyPage.resolve.title'), id: 'resolve' }
  const own = <OwnRefund mayEnd={mayResolve} />
  if (mayResolve === 'another') return <Card {...card}>{own}</Card>
  const effect = describeEffect(shown)
  const lead = (
    <>
      {own}
      <p>{t('discrepancyPage.resolve.lead')}</p>
      {effect && <p>{effect}</p>}
      {view.refundId && <p>{t('discrepancyPage.resolve.refundFirst')}</p>}
    </>
  )
  return (
    <FormCard
      {...{ ...card, lead, action: `${pathOf(shown)}/resolution` }}
      fields={amount === undefined ? {} : { shownAmount: amount }}
      submit={t('discrepancyPage.resolve.submit')}
    >
      {(field) => <TextArea {...field('reason', t('field.reason'))} required />}
    </FormCard>
  )
}

function describeEffect({ view, amount, currency }: ShownDiscrepancyPage): string | undefined {
  if (view.kind === 'payment_unreadable') return t('discrepancyPage.resolve.setsAside')
  if (amount === undefined) return undefined
  return compareAmounts(amount, '0') > 0
    ? t('discrepancyPage.resolve.enters', { amount: formatMoney(amount, currency) })
    : t('discrepancyPage.resolve.entersNothing')
}

const MAX_EXTERNAL = 20

type ShownDiscrepancyPage = Awaited<ReturnType<typeof readDiscrepancyPage>>

/** @throws DomainError `discrepancy_not_found`, also for an account that the person may not see */
async function findPathDiscrepancy({ db: { sql } }: ConsoleContext, c: ConsoleRequest) {
  const { merchant, id = '' } = c.req.param()
  return await findDiscrepancy(sql, narrowMerchants(c.get('access'), merchant), id)
}

async function readDiscrepancyPage(ctx: ConsoleContext, c: ConsoleRequest, row: DiscrepancyRow) {
  const access = c.get('access')
  const { merchantCode, transactionId, paymentId, kind, ours, theirs } = row
  const form = `${discrepancyPath(merchantCode, row.id)}/external`
  const asked = useKept(form).fields.externalId ?? c.req.query('external') ?? ''
  const named = { id: isUuid(asked) ? asked : undefined, text: `${ours} ${theirs}` }
  const payment = paymentId === null ? undefined : { merchantCode, paymentId }
  const entersGrowth = kind === 'unexplained_growth' && row.resolvedAt === null
  const [found, growth, external, deciders, mayResolve, mayDecideExternal] = await Promise.all([
    // The discrepancy may be about an unknown transaction.
    findTransaction(ctx, [merchantCode], transactionId).catch(() => undefined),
    payment && entersGrowth ? readGrowth(ctx.db.sql, payment) : undefined,
    payment ? listExternalToDecide(ctx, payment, named, MAX_EXTERNAL + 1) : [],
    listDeciders(ctx.db.sql, merchantCode),
    findMayEnd(ctx.db.sql, access, row),
    findMayEnd(ctx.db.sql, access, { merchantCode, transactionId, paymentId, refundId: null }),
  ])
  return {
    ...{ row, view: showDiscrepancy(row), deciders, mayResolve, mayDecideExternal },
    currency: found?.transaction.currency ?? null,
    /** The amount that a resolution enters (decimal string). */
    amount: entersGrowth ? (growth?.unexplained ?? '0') : undefined,
    ...{ external, named: named.id },
  }
}
