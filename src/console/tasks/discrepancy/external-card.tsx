import { type ExternalOutcome, findExternalObstacle } from '../../../decisions/judge-external.ts'
import type { MayEnd } from '../../../decisions/second-person.ts'
import { Card, DataTable, Identifier } from '../../../platform/html/components.tsx'
import { toIso } from '../../../platform/postgres/row-set.ts'
import { deriveExternalState, type ExternalRecord } from '../../../refunds/external-view.ts'
import { Time } from '../../cells.tsx'
import type { ConsoleRequest } from '../../env.ts'
import { formatMoney } from '../../format-money.ts'
import { Choices } from '../../forms/choices.tsx'
import { Form } from '../../forms/form.tsx'
import { TextArea } from '../../forms/text-area.tsx'
import { ExternalRefundState } from '../../states.tsx'
import { t } from '../../view.ts'
import { AgainstEvidence } from '../against-evidence.tsx'
import { type PageState, pickForm } from '../page-state.ts'
import type { ShownDiscrepancyPage } from './read-discrepancy.ts'

const OUTCOMES: readonly ExternalOutcome[] = ['matched', 'part_of_first_sight', 'never_happened']

type CardProps = { c: ConsoleRequest; path: string; shown: ShownDiscrepancyPage; state: PageState }

/** The refunds of the payment made elsewhere, with the decision about one of them: by default the oldest reserved one. */
export function ExternalCard({ c, path, shown, state }: CardProps) {
  const { external, mayDecideExternal: mayDecide } = shown
  const named = state.fields?.externalId ?? c.req.query('external')
  const chosen =
    external.find(({ id }) => id === named) ??
    external.findLast((one) => deriveExternalState(one) === 'reserved')
  return (
    <Card title={t('story.sections.external')} id="external">
      <p>{t('discrepancyPage.external.lead')}</p>
      <DataTable
        caption={t('story.sections.external')}
        columns={[
          { title: t('field.amount') },
          { title: t('field.requestId') },
          { title: t('field.notified') },
          { title: t('field.state') },
        ]}
        rows={external.map((one) => [
          <a href={`${path}?external=${one.id}#external`}>
            {formatMoney(one.amount, one.currency)}
          </a>,
          one.source === 'person' ? (
            t('discrepancyPage.external.entered')
          ) : (
            <Identifier>{one.requestId}</Identifier>
          ),
          one.notifiedAt === null ? null : <Time iso={toIso(one.notifiedAt)} />,
          <ExternalRefundState state={deriveExternalState(one)} />,
        ])}
      />
      {chosen === undefined ? null : <DecideExternal {...{ c, path, chosen, state, mayDecide }} />}
    </Card>
  )
}

function DecideExternal(props: {
  c: ConsoleRequest
  path: string
  chosen: ExternalRecord
  state: PageState
  mayDecide: MayEnd
}) {
  const { c, path, chosen, state, mayDecide } = props
  const { fields, problems } = pickForm({ c, path }, state, 'external')
  const judged = OUTCOMES.map((outcome) => ({
    outcome,
    obstacle: findExternalObstacle(chosen, outcome),
  }))
  const possible = judged.filter(({ obstacle }) => obstacle === undefined)
  const title = t('discrepancyPage.external.decide', {
    amount: formatMoney(chosen.amount, chosen.currency),
  })
  if (mayDecide === 'another') {
    return (
      <>
        <h3>{title}</h3>
        <p>{t('discrepancyPage.ownRefund.another')}</p>
      </>
    )
  }
  return (
    <>
      <h3>{title}</h3>
      {mayDecide === 'self' ? <p class="warn">{t('discrepancyPage.ownRefund.self')}</p> : null}
      {judged.map(({ outcome, obstacle }) =>
        obstacle === undefined ? null : (
          <p class="soft">
            {t('discrepancyPage.external.notPossible', {
              outcome: t(`discrepancyPage.external.outcomes.${outcome}`),
              reason: t(`discrepancyPage.external.obstacles.${obstacle}`),
            })}
          </p>
        ),
      )}
      {possible.length === 0 ? null : (
        <Form
          c={c}
          action={`${path}/external`}
          fields={{ externalId: chosen.id, state: deriveExternalState(chosen) }}
          stacked
        >
          <Choices
            name="externalOutcome"
            label={t('discrepancyPage.external.outcome')}
            options={possible.map(({ outcome }) => ({
              value: outcome,
              label: t(`discrepancyPage.external.outcomes.${outcome}`),
            }))}
            value={fields.externalOutcome}
            problem={problems.externalOutcome}
          />
          <TextArea
            name="externalReason"
            label={t('field.reason')}
            value={fields.externalReason}
            problem={problems.externalReason}
            required
          />
          <AgainstEvidence evidence={state.form === 'external' ? (state.evidence ?? []) : []} />
          <button type="submit">{t('decisions.decide.submit')}</button>
        </Form>
      )}
    </>
  )
}
