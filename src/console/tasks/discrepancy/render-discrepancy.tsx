import { rateKind } from '../../../discrepancies/kinds.ts'
import { compareAmounts } from '../../../money.ts'
import { Card, Facts, Identifier, Notice } from '../../../platform/html/components.tsx'
import { Time } from '../../cells.tsx'
import type { ConsoleRequest } from '../../env.ts'
import { formatMoney } from '../../format-money.ts'
import { Form } from '../../forms/form.tsx'
import { TextArea } from '../../forms/text-area.tsx'
import { renderConsolePage } from '../../layout.tsx'
import { discrepancyPath, refundPagePath, storyPath } from '../../paths.ts'
import { hasScope } from '../../permissions.ts'
import { count, listTexts, t } from '../../view.ts'
import { nameKind, nameSource } from '../../words.ts'
import { AnnotationCard } from '../annotation-card.tsx'
import { type FormState, type PageState, pickForm } from '../page-state.ts'
import { ExternalCard } from './external-card.tsx'
import type { ShownDiscrepancyPage } from './read-discrepancy.ts'

/** Answers with the page of one discrepancy: both sides, what they mean, and what to do. */
export async function renderDiscrepancyPage(
  c: ConsoleRequest,
  shown: ShownDiscrepancyPage,
  state: PageState = {},
): Promise<Response> {
  const { view, row, deciders } = shown
  const { meaning, steps } = explainKind(view.kind)
  const path = discrepancyPath(view.merchantCode, view.id)
  return await renderConsolePage(
    c,
    { title: nameKind(view.kind), current: 'tasks', status: state.status ?? 200 },
    <>
      {state.messages?.map((message) => (
        <Notice tone="bad">{message}</Notice>
      ))}
      <Card title={t('discrepancyPage.meaning')}>
        <p>{meaning}</p>
        <h3>{t('discrepancyPage.steps')}</h3>
        <p>{steps}</p>
      </Card>
      <SidesCard shown={shown} />
      <FactsCard c={c} shown={shown} />
      {shown.external.length > 0 ? <ExternalCard {...{ c, path, shown, state }} /> : null}
      {row.resolvedAt === null ? (
        <ResolveCard of={{ c, path, shown }} state={pickForm({ c, path }, state, 'resolution')} />
      ) : null}
      <AnnotationCard
        {...{ c, path, deciders, state }}
        review={row}
        isClosed={row.resolvedAt !== null}
      />
    </>,
  )
}

function explainKind(kind: string) {
  const { meaning, steps } = Object.fromEntries(listTexts(`discrepancyHelp.${kind}`))
  return {
    meaning: meaning ?? t('discrepancyHelp.unknown.meaning'),
    steps: steps ?? t('discrepancyHelp.unknown.steps'),
  }
}

function SidesCard({ shown: { row, view } }: { shown: ShownDiscrepancyPage }) {
  return (
    <Card title={t('discrepancyPage.sides')}>
      <div class="sides">
        {(['ours', 'theirs'] as const).map((side) => (
          <div>
            <h3>{nameSource(view[side].source)}</h3>
            <p>{row[side]}</p>
          </div>
        ))}
      </div>
    </Card>
  )
}

function FactsCard({ c, shown: { view } }: { c: ConsoleRequest; shown: ShownDiscrepancyPage }) {
  const { merchantCode, transactionId, paymentId, refundId } = view
  const refund =
    refundId !== null && hasScope(c, 'refunds:read') ? (
      <a href={refundPagePath(merchantCode, refundId)}>{t('discrepancyPage.openRefund')}</a>
    ) : null
  const rows = [
    [t('field.state'), <State view={view} />],
    [t('field.severity'), t(`discrepancyPage.severities.${rateKind(view.kind)}`)],
    [t('field.account'), merchantCode],
    [
      t('field.transaction'),
      <a href={storyPath({ merchantCode, transactionId })}>{transactionId}</a>,
    ],
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

type ResolveForm = { c: ConsoleRequest; path: string; shown: ShownDiscrepancyPage }

function ResolveCard({ of, state }: { of: ResolveForm; state: FormState }) {
  const { c, path, shown } = of
  const effect = describeEffect(shown)
  const fields: Record<string, string> =
    shown.amount === undefined ? {} : { shownAmount: shown.amount }
  if (shown.mayResolve === 'another') {
    return (
      <Card title={t('discrepancyPage.resolve.title')} id="resolve">
        <p>{t('discrepancyPage.ownRefund.another')}</p>
      </Card>
    )
  }
  return (
    <Card title={t('discrepancyPage.resolve.title')} id="resolve">
      <p>{t('discrepancyPage.resolve.lead')}</p>
      {shown.mayResolve === 'self' ? (
        <p class="warn">{t('discrepancyPage.ownRefund.self')}</p>
      ) : null}
      {effect === undefined ? null : <p>{effect}</p>}
      {shown.view.refundId === null ? null : <p>{t('discrepancyPage.resolve.refundFirst')}</p>}
      <Form c={c} action={`${path}/resolution`} fields={fields} stacked>
        <TextArea
          name="reason"
          label={t('field.reason')}
          value={state.fields.reason}
          problem={state.problems.reason}
          required
        />
        <button type="submit">{t('discrepancyPage.resolve.submit')}</button>
      </Form>
    </Card>
  )
}

/** What resolving does beyond closing the discrepancy. */
function describeEffect({ view, amount, currency }: ShownDiscrepancyPage): string | undefined {
  if (view.kind === 'payment_unreadable') return t('discrepancyPage.resolve.setsAside')
  if (amount === undefined) return undefined
  return compareAmounts(amount, '0') > 0
    ? t('discrepancyPage.resolve.enters', { amount: formatMoney(amount, currency) })
    : t('discrepancyPage.resolve.entersNothing')
}
