import { EXTERNAL_OUTCOMES, findExternalObstacle } from '../decisions/external.ts'
import type { MayEnd } from '../decisions/second-person.ts'
import { Card, Identifier } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import { deriveExternalState, type ExternalRecord } from '../refunds/external-view.ts'
import { cell, type ListColumn, link, Rows, Time } from './cells.tsx'
import type { ShownDiscrepancyPage } from './discrepancy-subject.ts'
import { formatMoney } from './format-money.ts'
import { AgainstEvidence, Choices, Form, TextArea } from './forms.tsx'
import { ExternalRefundState } from './states.tsx'
import { t, useKept } from './view.ts'

const listColumns = (path: string): readonly ListColumn<ExternalRecord>[] => [
  link(
    'amount',
    (one) => formatMoney(one.amount, one.currency),
    ({ id }) => `${path}?external=${id}#external`,
  ),
  cell(
    'requestId',
    ({ requestId }) => requestId,
    ({ source, requestId }) =>
      source === 'person' ? (
        t('discrepancyPage.external.entered')
      ) : (
        <Identifier>{requestId ?? ''}</Identifier>
      ),
  ),
  cell(
    'notified',
    ({ notifiedAt }) => notifiedAt,
    ({ notifiedAt }) => (notifiedAt === null ? null : <Time iso={toIso(notifiedAt)} />),
  ),
  cell('state', deriveExternalState, (one) => (
    <ExternalRefundState state={deriveExternalState(one)} />
  )),
]

/** The refunds of the payment made elsewhere, with the decision about one of them: by default the oldest reserved one. */
export function ExternalCard(props: {
  path: string
  shown: ShownDiscrepancyPage
  /** The id of the chosen one. */
  named: string | undefined
}) {
  const { path, shown } = props
  const { external, mayDecideExternal: mayDecide } = shown
  const { externalId: named = props.named } = useKept(`${path}/external`).fields
  const chosen =
    external.find(({ id }) => id === named) ??
    external.findLast((one) => deriveExternalState(one) === 'reserved')
  const title = t('story.sections.external')
  return (
    <Card title={title} id="external">
      <p>{t('discrepancyPage.external.lead')}</p>
      <Rows caption={title} columns={listColumns(path)} rows={external} />
      {chosen === undefined ? null : <DecideExternal {...{ path, chosen, mayDecide }} />}
    </Card>
  )
}

function DecideExternal(props: { path: string; chosen: ExternalRecord; mayDecide: MayEnd }) {
  const { path, chosen, mayDecide } = props
  const action = `${path}/external`
  const { fields, problems, evidence } = useKept(action)
  const judged = EXTERNAL_OUTCOMES.map((outcome) => ({
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
          action={action}
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
          <AgainstEvidence evidence={evidence} />
          <button type="submit">{t('decisions.decide.submit')}</button>
        </Form>
      )}
    </>
  )
}
