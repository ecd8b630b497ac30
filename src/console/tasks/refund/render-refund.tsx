import type { Child } from 'hono/jsx'
import { Card, Notice } from '../../../platform/html/components.tsx'
import type { ConsoleContext } from '../../context.ts'
import type { ConsoleRequest } from '../../env.ts'
import { formatMoney } from '../../format-money.ts'
import { renderConsolePage } from '../../layout.tsx'
import { discrepancyPath, refundPagePath } from '../../paths.ts'
import { t } from '../../view.ts'
import { nameKind } from '../../words.ts'
import { AnnotationCard } from '../annotation-card.tsx'
import { type PageState, pickForm } from '../page-state.ts'
import { ApproveCard, CancelCard, ConfirmCard, DecideCard } from './decision-cards.tsx'
import { findOffers } from './find-offers.ts'
import { ProofCard, StepsCard, SupportCard } from './proof-cards.tsx'
import type { ShownRefundPage } from './read-refund.ts'
import { RefundFactsCard } from './refund-facts.tsx'

/** Why something is not offered. */
export function ObstacleCard({ obstacles }: { obstacles: readonly string[] }) {
  if (obstacles.length === 0) return null
  return (
    <Card title={t('decisions.notNow.title')}>
      {obstacles.map((text) => (
        <p>{text}</p>
      ))}
    </Card>
  )
}

/** Answers with the page of one refund: what is asked, the evidence beside the decision, and its steps. */
export async function renderRefundPage(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  shown: ShownRefundPage,
  state: PageState = {},
): Promise<Response> {
  const { view, version } = shown
  const offers = findOffers(ctx, c, shown)
  const path = refundPagePath(view.merchantCode, view.id)
  const forms = { c, path, version, shown }
  return await renderConsolePage(
    c,
    {
      title: t('refunds.title', { amount: formatMoney(view.amount, view.currency) }),
      current: 'tasks',
      status: state.status ?? 200,
    },
    <>
      {state.messages?.map((message) => (
        <Notice tone="bad">{message}</Notice>
      ))}
      <RefundFactsCard shown={shown} />
      {offers.approve ? (
        <ApproveCard
          of={forms}
          decline={offers.decline}
          state={pickForm(forms, state, 'approval')}
        />
      ) : null}
      {offers.showsProof ? <ProofCard proof={shown.proof} /> : null}
      {offers.showsProof ? <SupportCard shown={shown} /> : null}
      {offers.confirm ? <ConfirmCard of={forms} /> : null}
      {offers.outcomes.length > 0 ? (
        <DecideCard
          of={forms}
          outcomes={offers.outcomes}
          alone={offers.alone}
          evidence={state.evidence ?? []}
          state={pickForm(forms, state, 'resolution')}
        />
      ) : null}
      <ObstacleCard obstacles={offers.obstacles} />
      {offers.cancel ? (
        <CancelCard of={forms} state={pickForm(forms, state, 'cancellation')} />
      ) : null}
      {offers.annotate ? renderReview(forms, state) : null}
      <StepsCard proof={shown.proof} />
    </>,
  )
}

/** Of a refund with an open discrepancy, that one is assigned and noted. */
function renderReview(
  of: { c: ConsoleRequest; path: string; shown: ShownRefundPage },
  state: PageState,
): Child {
  const { c, path, shown } = of
  const { discrepancies, review, deciders } = shown
  if (discrepancies.length === 0) {
    return <AnnotationCard c={c} path={path} review={review} deciders={deciders} state={state} />
  }
  return (
    <section>
      <h2>{t('decisions.review.title')}</h2>
      <p>{t('decisions.review.through')}</p>
      <ul>
        {discrepancies.map(({ merchantCode, id, kind }) => (
          <li>
            <a href={discrepancyPath(merchantCode, id)}>{nameKind(kind)}</a>
          </li>
        ))}
      </ul>
    </section>
  )
}
