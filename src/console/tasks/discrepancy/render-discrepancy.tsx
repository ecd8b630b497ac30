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
import { unknownHelp } from '../../texts/discrepancy-help.ts'
import { TEXTS } from '../../texts/en.ts'
import { nameKind, nameSource } from '../../words.ts'
import { AnnotationCard } from '../annotation-card.tsx'
import { type FormState, type PageState, pickForm } from '../page-state.ts'
import { ExternalCard } from './external-card.tsx'
import type { ShownDiscrepancyPage } from './read-discrepancy.ts'

const texts = TEXTS.discrepancyPage

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
      <Card title={texts.meaning}>
        <p>{meaning}</p>
        <h3>{texts.steps}</h3>
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
  return Object.entries(TEXTS.discrepancyHelp).find(([name]) => name === kind)?.[1] ?? unknownHelp
}

function SidesCard({ shown: { row, view } }: { shown: ShownDiscrepancyPage }) {
  return (
    <Card title={texts.sides}>
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
  const { facts } = texts
  const { merchantCode, transactionId, paymentId, refundId } = view
  const refund =
    refundId !== null && hasScope(c, 'refunds:read') ? (
      <a href={refundPagePath(merchantCode, refundId)}>{texts.openRefund}</a>
    ) : null
  const rows = [
    [facts.state, <State view={view} />],
    [facts.severity, texts.severities[rateKind(view.kind)]],
    [facts.account, merchantCode],
    [facts.transaction, <a href={storyPath({ merchantCode, transactionId })}>{transactionId}</a>],
    [facts.order, view.orderId],
    [facts.payment, paymentId === null ? null : <Identifier>{paymentId}</Identifier>],
    [facts.refund, refund],
    [facts.firstSeen, <Time iso={view.firstSeenAt} />],
    [facts.lastSeen, <Time iso={view.lastSeenAt} />],
    [facts.times, facts.timesText(view.times)],
  ] as const
  return (
    <Card title={texts.about}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
    </Card>
  )
}

function State({ view: { resolvedAt, resolution } }: { view: ShownDiscrepancyPage['view'] }) {
  if (resolvedAt === null) return <>{texts.open}</>
  const how = resolution ? texts.resolvedBy(resolution.by, resolution.reason) : texts.agreed
  return (
    <>
      {texts.resolved} {how} <Time iso={resolvedAt} />
    </>
  )
}

type ResolveForm = { c: ConsoleRequest; path: string; shown: ShownDiscrepancyPage }

function ResolveCard({ of, state }: { of: ResolveForm; state: FormState }) {
  const { c, path, shown } = of
  const { title, lead, reason, submit, refundFirst } = texts.resolve
  const effect = describeEffect(shown)
  const fields: Record<string, string> =
    shown.amount === undefined ? {} : { shownAmount: shown.amount }
  if (shown.mayResolve === 'another') {
    return (
      <Card title={title} id="resolve">
        <p>{texts.ownRefund.another}</p>
      </Card>
    )
  }
  return (
    <Card title={title} id="resolve">
      <p>{lead}</p>
      {shown.mayResolve === 'self' ? <p class="warn">{texts.ownRefund.self}</p> : null}
      {effect === undefined ? null : <p>{effect}</p>}
      {shown.view.refundId === null ? null : <p>{refundFirst}</p>}
      <Form c={c} action={`${path}/resolution`} fields={fields} stacked>
        <TextArea
          name="reason"
          label={reason}
          value={state.fields.reason}
          problem={state.problems.reason}
          required
        />
        <button type="submit">{submit}</button>
      </Form>
    </Card>
  )
}

/** What resolving does beyond closing the discrepancy. */
function describeEffect({ view, amount, currency }: ShownDiscrepancyPage): string | undefined {
  const { enters, entersNothing, setsAside } = texts.resolve
  if (view.kind === 'payment_unreadable') return setsAside
  if (amount === undefined) return undefined
  return compareAmounts(amount, '0') > 0 ? enters(formatMoney(amount, currency)) : entersNothing
}
