import { z } from '@hono/zod-openapi'
import {
  EXTERNAL_OUTCOMES,
  findExternalObstacle,
  resolveExternalRefund,
} from '../decisions/external.ts'
import type { MayEnd } from '../decisions/second-person.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { DomainError } from '../errors.ts'
import { Card, Identifier } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import { isAboutExternal } from '../refunds/external.ts'
import {
  deriveExternalState,
  type ExternalRecord,
  findExternalRefund,
} from '../refunds/external-view.ts'
import { cell, type ListColumn, link, Rows, state, Time } from './cells.tsx'
import { ActionForm, Choices, TextArea } from './forms.tsx'
import { type Action, explainHoldsBack, parseFields, requireText, Ticked } from './page.ts'
import { formatMoney, t } from './view.ts'
import { signExternal, withMore } from './words.ts'

const listColumns = (path: string): readonly ListColumn<ExternalRecord>[] => [
  link('amount', ({ id, amount, currency }) => [
    formatMoney(amount, currency),
    `${path}?external=${id}#external`,
  ]),
  cell('requestId', nameRequest),
  cell('notified', ({ notifiedAt }) => notifiedAt && <Time iso={toIso(notifiedAt)} />),
  state('state', (one) => signExternal(deriveExternalState(one))),
]

function nameRequest({ source, requestId }: ExternalRecord) {
  if (source === 'person') return t('discrepancyPage.external.entered')
  return <Identifier>{requestId}</Identifier>
}

export function ExternalCard(props: {
  path: string
  external: readonly ExternalRecord[]
  row: DiscrepancyRow
  mayDecide: MayEnd
  named: string | undefined
  hasMore: boolean
}) {
  const { path, external, row, mayDecide, named } = props
  const chosen =
    external.find(({ id }) => id === named) ??
    // Any other one has to be chosen first.
    external.find((one) => isAboutExternal(row, one) && deriveExternalState(one) === 'reserved')
  const title = t('story.sections.external')
  return (
    <Card title={title} id="external">
      <p>{t('discrepancyPage.external.lead')}</p>
      <Rows caption={title} columns={listColumns(path)} rows={external} />
      {props.hasMore && <p class="soft">{t('discrepancyPage.external.more')}</p>}
      {chosen && <DecideExternal {...{ path, chosen, mayDecide }} />}
    </Card>
  )
}

function DecideExternal(props: { path: string; chosen: ExternalRecord; mayDecide: MayEnd }) {
  const { path, chosen, mayDecide } = props
  const judged = EXTERNAL_OUTCOMES.map((value) => ({
    ...{ value, obstacle: findExternalObstacle(chosen, value) },
    label: t(`discrepancyPage.external.outcomes.${value}`),
  }))
  const options = judged.filter(({ obstacle }) => obstacle === undefined)
  const amount = formatMoney(chosen.amount, chosen.currency)
  const form = (
    <ActionForm
      action={`${path}/external`}
      fields={{ externalId: chosen.id, state: deriveExternalState(chosen) }}
      submit={t('decisions.decide.submit')}
    >
      {(field) => (
        <>
          <Choices
            {...field('externalOutcome', t('discrepancyPage.external.outcome'))}
            options={options}
          />
          <TextArea {...field('externalReason', t('field.reason'))} required />
        </>
      )}
    </ActionForm>
  )
  return (
    <>
      <h3>
        {t('discrepancyPage.external.decide', { amount })} {nameRequest(chosen)}
      </h3>
      <OwnRefund mayEnd={mayDecide} />
      {mayDecide === 'another' ? null : (
        <>
          {judged.map(
            ({ label, obstacle }) =>
              obstacle && (
                <p class="soft">
                  {withMore(label, t(`discrepancyPage.external.obstacles.${obstacle}`))}
                </p>
              ),
          )}
          {options.length === 0 ? null : form}
        </>
      )}
    </>
  )
}

/** Says that another person has to end what holds back one's own refund, or that one decides alone. */
export function OwnRefund({ mayEnd }: { mayEnd: MayEnd }) {
  if (mayEnd === 'free') return null
  return (
    <p class={mayEnd === 'self' ? 'warn' : undefined}>{t(`discrepancyPage.ownRefund.${mayEnd}`)}</p>
  )
}

const ExternalFields = z.object({
  externalId: z.uuid(),
  state: z.string().catch(''),
  externalOutcome: z.enum(EXTERNAL_OUTCOMES, 'decisions.problems.outcome'),
  externalReason: requireText('decisions.problems.reason'),
  againstEvidence: Ticked,
})

export const externalAction: Action<DiscrepancyRow> = {
  // If it has not changed, its amount does not fit the decision.
  explain: (error) =>
    error.code === 'not_decidable' && !error.changed
      ? t('discrepancyPage.refused.notFitting')
      : explainHoldsBack(error),
  async run({ ctx, access, of: { merchantCode, paymentId }, fields }) {
    const { externalId, state, againstEvidence, ...given } = parseFields(ExternalFields, fields)
    const { externalOutcome: outcome, externalReason: reason } = given
    const external = await findExternalRefund(ctx, [merchantCode], externalId)
    if (external.paymentId !== paymentId) {
      throw new DomainError('external_refund_not_found', `No external refund ${externalId}`)
    }
    // The state is compared again within the commit.
    if (deriveExternalState(external) !== state) {
      const detail = 'it has changed since it was shown'
      throw new DomainError('not_decidable', detail, { changed: true })
    }
    await resolveExternalRefund(ctx, external, { outcome, reason, againstEvidence }, access)
    return { notice: 'externalDecided' }
  },
}
