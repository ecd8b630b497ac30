import { z } from 'zod'
import { annotateRefund } from '../decisions/discrepancies.ts'
import { findSubject } from '../decisions/holds.ts'
import { DECISIONS, type Decision, OUTCOMES } from '../decisions/obstacles.ts'
import { decideRefund } from '../decisions/refunds.ts'
import { Card } from '../platform/html/components.tsx'
import type { FoundRefund } from '../refunds/find.ts'
import { Annotations, annotations } from './annotate.tsx'
import { FieldFacts, List } from './cells.tsx'
import { nameReceiver, ProofCard, RefundFacts, StepsCard, SupportCard } from './evidence.tsx'
import { Choices, FormCard, TextArea } from './forms.tsx'
import { HoldForm, postHold } from './holds.tsx'
import {
  type Action,
  definePage,
  explainHoldsBack,
  OptionalText,
  parseFields,
  requireText,
  Ticked,
} from './page.ts'
import { discrepancyPath, refundPagePath } from './paths.ts'
import {
  findOffers,
  findPathRefund,
  type Offers,
  readRefundPage,
  type ShownRefundPage,
} from './refund-subject.ts'
import { isOpen } from './story-refunds.tsx'
import { can, formatMoney, t } from './view.ts'
import { nameKind } from './words.ts'

const reason = requireText('decisions.problems.reason')

const decide = (
  { scope }: (typeof DECISIONS)[Decision],
  schema: z.ZodType<Parameters<typeof decideRefund>[2]>,
): Action<FoundRefund> => ({
  scope,
  async run({ ctx, access, of, fields }) {
    const asked = parseFields(schema, fields)
    await decideRefund(ctx, of, { ...asked, shown: fields.version ?? '' }, access)
    return { notice: NOTICES[asked.decision] }
  },
})

const NOTICES = {
  approve: 'refundApproved',
  decline: 'refundDeclined',
  cancel: 'refundCancelled',
  succeeded: 'refundDecided',
  failed: 'refundDecided',
  returned: 'refundDecided',
} as const

const Approval = z.object({ decision: z.enum(['approve', 'decline']), reason: OptionalText })

const Resolution = z
  .object({
    outcome: z.enum(OUTCOMES, 'decisions.problems.outcome'),
    reason,
    againstEvidence: Ticked,
  })
  .transform(({ outcome: decision, ...given }) => ({ ...given, decision }))

const Cancellation = z
  .object({ cancelReason: reason })
  .transform((given) => ({ decision: 'cancel' as const, reason: given.cancelReason }))

const ACTIONS: Readonly<Record<string, Action<FoundRefund>>> = {
  approval: decide(DECISIONS.approve, Approval),
  resolution: decide(DECISIONS.succeeded, Resolution),
  cancellation: decide(DECISIONS.cancel, Cancellation),
  hold: {
    scope: 'ops',
    explain: explainHoldsBack,
    async run(asked) {
      const { merchantCode, refundId } = asked.of.refund
      const subject = await findSubject(asked.ctx.db.sql, [merchantCode], 'refund', refundId)
      return await postHold(asked, subject)
    },
  },
  ...annotations<FoundRefund>({
    merchantOf: ({ refund }) => refund.merchantCode,
    annotate: ({ ctx, access, of }, given) => annotateRefund(ctx, access, of, given),
  }),
}

export const refundPage = definePage<FoundRefund>({
  path: '/console/refunds/:merchant/:refundId',
  scope: 'refunds:read',
  load: findPathRefund,
  async show(ctx, c, { refund }) {
    const shown = await readRefundPage(ctx, c, refund)
    const { view, proof } = shown
    const offers = findOffers(ctx, shown)
    return {
      title: t('refunds.title', { amount: formatMoney(view.amount, view.currency) }),
      current: 'tasks',
      body: (
        <>
          <RefundFacts shown={shown} ctx={ctx} />
          {offers.isOffered('approve') ? <ApproveCard {...{ shown, offers }} /> : null}
          {offers.showsProof ? <ProofCard proof={proof} /> : null}
          {offers.showsProof ? <SupportCard shown={shown} /> : null}
          {offers.confirm ? <ConfirmCard shown={shown} /> : null}
          {offers.outcomes.length > 0 ? <DecideCard shown={shown} offers={offers} /> : null}
          {offers.obstacles.length === 0 ? null : (
            <Card title={t('decisions.notNow.title')}>
              {offers.obstacles.map((text) => (
                <p>{text}</p>
              ))}
            </Card>
          )}
          {offers.isOffered('cancel') ? <CancelCard shown={shown} /> : null}
          {can('ops') && (isOpen(view) || view.hold !== null) ? <HoldCard shown={shown} /> : null}
          {offers.annotate ? <Review shown={shown} /> : null}
          <StepsCard proof={proof} />
        </>
      ),
    }
  },
  actions: ACTIONS,
})

const pathOf = ({ view }: ShownRefundPage) => refundPagePath(view.merchantCode, view.id)

function ApproveCard({ shown, offers }: { shown: ShownRefundPage; offers: Offers }) {
  const { view, payment, version } = shown
  const amount = formatMoney(view.amount, view.currency)
  const buttons = (
    <div class="row">
      <button type="submit" name="decision" value="approve">
        {t('decisions.approve.approve')}
      </button>
      {offers.isOffered('decline') ? (
        <button class="danger" type="submit" name="decision" value="decline">
          {t('decisions.approve.decline')}
        </button>
      ) : null}
    </div>
  )
  const lead = (
    <>
      <p>{t('decisions.approve.preview', { amount, payment: view.paymentId })}</p>
      <FieldFacts
        of={{
          amount: <strong>{amount}</strong>,
          receiver: nameReceiver(shown),
          leftBeside: formatMoney(payment.refundable, view.currency),
        }}
      />
    </>
  )
  return (
    <FormCard
      {...{ title: t('refunds.offers.approve'), id: 'approve', lead, buttons }}
      {...{ action: `${pathOf(shown)}/approval`, fields: { version } }}
    >
      {(field) => (
        <TextArea {...field('reason', t('field.reason'), t('decisions.approve.reasonHint'))} />
      )}
    </FormCard>
  )
}

/** Confirms with one click a success that was only inferred. */
function ConfirmCard({ shown }: { shown: ShownRefundPage }) {
  const reason = t('decisions.confirm.reason')
  return (
    <FormCard
      {...{ title: t('decisions.confirm.title'), id: 'confirm', lead: t('decisions.confirm.lead') }}
      action={`${pathOf(shown)}/resolution`}
      fields={{ version: shown.version, outcome: 'succeeded', reason }}
      submit={t('decisions.confirm.submit')}
    />
  )
}

function DecideCard({ shown, offers }: { shown: ShownRefundPage; offers: Offers }) {
  const { outcomes, alone } = offers
  const options = outcomes.map((value) => ({
    ...{ value, label: t(`decisions.outcomes.${value}`) },
    hint: t(`decisions.outcomeHints.${value}`),
  }))
  const lead = (
    <>
      <p>{t('decisions.decide.lead')}</p>
      {alone && <p class="warn">{t(`decisions.decide.alone.${alone}`)}</p>}
    </>
  )
  return (
    <FormCard
      {...{ title: t('decisions.decide.title'), id: 'decide', lead }}
      {...{ action: `${pathOf(shown)}/resolution`, fields: { version: shown.version } }}
      submit={t('decisions.decide.submit')}
    >
      {(field) => (
        <>
          <Choices {...field('outcome', t('decisions.decide.outcome'))} options={options} />
          <TextArea
            {...field('reason', t('field.reason'), t('decisions.decide.reasonHint'))}
            required
          />
        </>
      )}
    </FormCard>
  )
}

function CancelCard({ shown }: { shown: ShownRefundPage }) {
  return (
    <FormCard
      {...{ title: t('decisions.cancel.title'), id: 'cancel', lead: t('decisions.cancel.lead') }}
      {...{ action: `${pathOf(shown)}/cancellation`, fields: { version: shown.version } }}
      {...{ submit: t('decisions.cancel.submit'), style: 'danger' }}
    >
      {(field) => <TextArea {...field('cancelReason', t('field.reason'))} required />}
    </FormCard>
  )
}

function HoldCard({ shown: { view, mayRelease } }: { shown: ShownRefundPage }) {
  const { merchantCode, id, hold } = view
  return (
    <Card title={t(hold === null ? 'story.actions.hold' : 'states.held')} id="hold">
      <HoldForm {...{ target: 'refund', merchantCode, id, hold, mayRelease }} />
    </Card>
  )
}

/** If the refund has an open discrepancy, people are assigned and notes are taken there. */
function Review({ shown }: { shown: ShownRefundPage }) {
  const { discrepancies, review, deciders } = shown
  if (discrepancies.length === 0)
    return <Annotations {...{ path: pathOf(shown), review, deciders }} />
  return (
    <Card title={t('decisions.review.title')}>
      <p>{t('decisions.review.through')}</p>
      <List
        items={discrepancies.map(({ merchantCode, id, kind }) => (
          <a href={discrepancyPath(merchantCode, id)}>{nameKind(kind)}</a>
        ))}
      />
    </Card>
  )
}
