import type { RefundOutcome } from '../../../decisions/obstacles.ts'
import { Card, Facts, Identifier } from '../../../platform/html/components.tsx'
import { Time } from '../../cells.tsx'
import type { ConsoleRequest } from '../../env.ts'
import { formatMoney } from '../../format-money.ts'
import { Choices } from '../../forms/choices.tsx'
import { Form } from '../../forms/form.tsx'
import { TextArea } from '../../forms/text-area.tsx'
import { t } from '../../view.ts'
import { AgainstEvidence } from '../against-evidence.tsx'
import type { FormState } from '../page-state.ts'
import type { Offers } from './find-offers.ts'
import type { ShownRefundPage } from './read-refund.ts'

/** What every form of the page needs: where it is sent, and the version it was shown for. */
export type DecisionForms = {
  c: ConsoleRequest
  path: string
  version: string
  shown: ShownRefundPage
}

/** To approve or decline, with what will be sent. */
export function ApproveCard(props: { of: DecisionForms; decline: boolean; state: FormState }) {
  const { of, decline: mayDecline, state } = props
  const { c, path, version, shown } = of
  const { view, payment } = shown
  const receiver = view.receiver
  const amount = formatMoney(view.amount, view.currency)
  return (
    <Card title={t('refunds.offers.approve')} id="approve">
      <p>{t('decisions.approve.preview', { amount, payment: view.paymentId })}</p>
      <Facts
        rows={[
          [t('field.amount'), <strong>{amount}</strong>],
          [
            t('field.receiver'),
            receiver === null
              ? t('decisions.asked.sameWay')
              : t('decisions.asked.receiverText', {
                  name: receiver.accountName,
                  number: receiver.accountNumber,
                  swift: receiver.swiftCode,
                }),
          ],
          [t('field.leftBeside'), formatMoney(payment.refundable, view.currency)],
          [t('field.requestId'), <Identifier>{view.id}</Identifier>],
          [t('field.requestedAt'), <Time iso={view.requestedAt} />],
        ]}
      />
      <Form c={c} action={`${path}/approval`} fields={{ version }} stacked>
        <TextArea
          name="reason"
          label={t('field.reason')}
          hint={t('decisions.approve.reasonHint')}
          value={state.fields.reason}
          problem={state.problems.reason}
        />
        <div class="row">
          <button type="submit" name="decision" value="approve">
            {t('decisions.approve.approve')}
          </button>
          {mayDecline ? (
            <button class="danger" type="submit" name="decision" value="decline">
              {t('decisions.approve.decline')}
            </button>
          ) : null}
        </div>
      </Form>
    </Card>
  )
}

/** To say that a refund happened whose success was only concluded: one click. */
export function ConfirmCard({ of: { c, path, version } }: { of: DecisionForms }) {
  const fields = { version, outcome: 'succeeded', reason: t('decisions.confirm.reason') }
  return (
    <Card title={t('decisions.confirm.title')} id="confirm">
      <p>{t('decisions.confirm.lead')}</p>
      <Form c={c} action={`${path}/resolution`} fields={fields}>
        <button type="submit">{t('decisions.confirm.submit')}</button>
      </Form>
    </Card>
  )
}

/** To decide the outcome. The confirmation appears once the decision turned out to contradict the evidence. */
export function DecideCard(props: {
  of: DecisionForms
  outcomes: readonly RefundOutcome[]
  alone: Offers['alone']
  evidence: readonly string[]
  state: FormState
}) {
  const { of, outcomes, alone, evidence, state } = props
  const { c, path, version } = of
  const { fields, problems } = state
  return (
    <Card title={t('decisions.decide.title')} id="decide">
      <p>{t('decisions.decide.lead')}</p>
      {alone ? <p class="warn">{t(`decisions.decide.alone.${alone}`)}</p> : null}
      <Form c={c} action={`${path}/resolution`} fields={{ version }} stacked>
        <Choices
          name="outcome"
          label={t('decisions.decide.outcome')}
          options={outcomes.map((value) => ({
            value,
            label: t(`decisions.outcomes.${value}`),
            hint: t(`decisions.outcomeHints.${value}`),
          }))}
          value={fields.outcome}
          problem={problems.outcome}
        />
        <TextArea
          name="reason"
          label={t('field.reason')}
          hint={t('decisions.decide.reasonHint')}
          value={fields.reason}
          problem={problems.reason}
          required
        />
        <AgainstEvidence evidence={evidence} />
        <button type="submit">{t('decisions.decide.submit')}</button>
      </Form>
    </Card>
  )
}

/** To cancel what was never sent. */
export function CancelCard(props: { of: DecisionForms; state: FormState }) {
  const { of, state } = props
  const { c, path, version } = of
  return (
    <Card title={t('decisions.cancel.title')} id="cancel">
      <p>{t('decisions.cancel.lead')}</p>
      <Form c={c} action={`${path}/cancellation`} fields={{ version }} stacked>
        <TextArea
          name="cancelReason"
          label={t('field.reason')}
          value={state.fields.cancelReason}
          problem={state.problems.cancelReason}
          required
        />
        <button class="danger" type="submit">
          {t('decisions.cancel.submit')}
        </button>
      </Form>
    </Card>
  )
}
