import type { RefundOutcome } from '../../../decisions/obstacles.ts'
import { Card, Facts, Identifier } from '../../../platform/html/components.tsx'
import { Time } from '../../cells.tsx'
import type { ConsoleRequest } from '../../env.ts'
import { formatMoney } from '../../format-money.ts'
import { Choices } from '../../forms/choices.tsx'
import { Form } from '../../forms/form.tsx'
import { TextArea } from '../../forms/text-area.tsx'
import { TEXTS } from '../../texts/en.ts'
import { AgainstEvidence } from '../against-evidence.tsx'
import type { FormState } from '../page-state.ts'
import type { Offers } from './find-offers.ts'
import type { ShownRefundPage } from './read-refund.ts'

const texts = TEXTS.decisions

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
  const { title, preview, reason, reasonHint, approve, decline } = texts.approve
  const receiver = view.receiver
  const amount = formatMoney(view.amount, view.currency)
  return (
    <Card title={title} id="approve">
      <p>{preview(amount, view.paymentId)}</p>
      <Facts
        rows={[
          [texts.asked.amount, <strong>{amount}</strong>],
          [
            texts.asked.receiver,
            receiver === null
              ? texts.asked.sameWay
              : texts.asked.receiverText(
                  receiver.accountName,
                  receiver.accountNumber,
                  receiver.swiftCode,
                ),
          ],
          [texts.asked.left, formatMoney(payment.refundable, view.currency)],
          [texts.asked.requestId, <Identifier>{view.id}</Identifier>],
          [texts.asked.askedAt, <Time iso={view.requestedAt} />],
        ]}
      />
      <Form c={c} action={`${path}/approval`} fields={{ version }} stacked>
        <TextArea
          name="reason"
          label={reason}
          hint={reasonHint}
          value={state.fields.reason}
          problem={state.problems.reason}
        />
        <div class="row">
          <button type="submit" name="decision" value="approve">
            {approve}
          </button>
          {mayDecline ? (
            <button class="danger" type="submit" name="decision" value="decline">
              {decline}
            </button>
          ) : null}
        </div>
      </Form>
    </Card>
  )
}

/** To say that a refund happened whose success was only concluded: one click. */
export function ConfirmCard({ of: { c, path, version } }: { of: DecisionForms }) {
  const { title, lead, submit, reason } = texts.confirm
  const fields = { version, outcome: 'succeeded', reason }
  return (
    <Card title={title} id="confirm">
      <p>{lead}</p>
      <Form c={c} action={`${path}/resolution`} fields={fields}>
        <button type="submit">{submit}</button>
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
  const { title, lead, outcome, reason, reasonHint, submit } = texts.decide
  return (
    <Card title={title} id="decide">
      <p>{lead}</p>
      {alone ? <p class="warn">{texts.decide.alone[alone]}</p> : null}
      <Form c={c} action={`${path}/resolution`} fields={{ version }} stacked>
        <Choices
          name="outcome"
          label={outcome}
          options={outcomes.map((value) => ({
            value,
            label: texts.outcomes[value],
            hint: texts.outcomeHints[value],
          }))}
          value={fields.outcome}
          problem={problems.outcome}
        />
        <TextArea
          name="reason"
          label={reason}
          hint={reasonHint}
          value={fields.reason}
          problem={problems.reason}
          required
        />
        <AgainstEvidence evidence={evidence} />
        <button type="submit">{submit}</button>
      </Form>
    </Card>
  )
}

/** To cancel what was never sent. */
export function CancelCard(props: { of: DecisionForms; state: FormState }) {
  const { of, state } = props
  const { c, path, version } = of
  const { title, lead, reason, submit } = texts.cancel
  return (
    <Card title={title} id="cancel">
      <p>{lead}</p>
      <Form c={c} action={`${path}/cancellation`} fields={{ version }} stacked>
        <TextArea
          name="cancelReason"
          label={reason}
          value={state.fields.cancelReason}
          problem={state.problems.cancelReason}
          required
        />
        <button class="danger" type="submit">
          {submit}
        </button>
      </Form>
    </Card>
  )
}
