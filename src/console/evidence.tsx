import { Card, Identifier } from '../platform/html/components.tsx'
import type { RefundProof } from '../refunds/proof.ts'
import {
  FieldFacts,
  id,
  List,
  type ListColumn,
  Prose,
  Rows,
  State,
  TableCard,
  Time,
  text,
  time,
} from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { HoldFacts } from './holds.tsx'
import { nameAnchor, storyPath } from './paths.ts'
import { nameReason } from './reasons.tsx'
import type { ShownRefundPage } from './refund-subject.ts'
import { Next } from './story-refunds.tsx'
import { formatMoney, say, t } from './view.ts'
import {
  describeApproval,
  describeFailure,
  describeMethod,
  describeNext,
  describeReceiver,
  describeResolution,
  nameKnown,
  nameRequester,
  signRefund,
  withMore,
} from './words.ts'

export function RefundFacts({ shown, ctx }: { shown: ShownRefundPage; ctx: ConsoleContext }) {
  const { view, payment, found } = shown
  const { currency, failure, approval, resolution, hold, accountHold, fee } = view
  const { gatewayReference, gatewayReferenceSource: source } = view
  const isHeld = Boolean(hold ?? accountHold ?? payment.payment.hold)
  const reference = gatewayReference && (
    <>
      <Identifier>{gatewayReference}</Identifier> {source && t(`refunds.referenceSource.${source}`)}
    </>
  )
  return (
    <Card title={t('decisions.asked.title')}>
      <FieldFacts
        of={{
          status: <State of={signRefund(view.status)} />,
          nextStep: <Next step={describeNext(found.refund, isHeld, ctx.config)} />,
          amount: formatMoney(view.amount, currency),
          receiver: nameReceiver(shown),
          requestedBy: nameRequester(view),
          requestedAt: <Time iso={view.requestedAt} />,
          reason: view.reason && nameReason(view.reason),
          payment: <Identifier>{view.paymentId}</Identifier>,
          paidAmount: formatMoney(payment.payment.amount, currency),
          leftBeside: formatMoney(payment.refundable, currency),
          paymentMethod: describeMethod(payment.payment.paymentMethod),
          order: view.orderId,
          account: view.merchantCode,
          requestId: <Identifier>{view.id}</Identifier>,
          gatewayReference: reference,
          fee: fee && formatMoney(fee, currency),
          failure: failure && describeFailure(failure),
          approval: approval?.decision ? describeApproval(approval) : null,
          decision: resolution && describeResolution(resolution),
          hold: hold && <HoldFacts hold={hold} />,
          accountHold: accountHold && <HoldFacts hold={accountHold} />,
        }}
      />
      {view.inferred && <p class="soft">{t('refunds.inferred')}</p>}
      {view.selfDecided && <p class="soft">{t('refunds.decision.self')}</p>}
      <p>
        <a href={storyPath(view, nameAnchor('refund', view.id))}>{t('decisions.asked.story')}</a>
      </p>
    </Card>
  )
}

/** Without a receiver, the money goes back the way it came. */
export function nameReceiver({ view, receiver }: ShownRefundPage): string {
  const to = receiver ?? view.receiver
  return to === null ? t('decisions.asked.sameWay') : describeReceiver(to)
}

export function ProofCard({ proof }: { proof: RefundProof }) {
  const neither = <Indications {...{ proof, supports: 'neither' }} />
  return (
    <Card title={t('decisions.proof.title')} id="proof">
      <div class="sides">
        <Indications {...{ proof, supports: 'succeeded' }} />
        <Indications {...{ proof, supports: 'failed' }} />
      </div>
      {proof.indications.some(({ supports }) => supports === 'neither') ? neither : null}
      <h3>{t('decisions.proof.cause')}</h3>
      <p>
        <Prose of={say(proof.evidence)} />
      </p>
    </Card>
  )
}

function Indications(props: { proof: RefundProof; supports: 'succeeded' | 'failed' | 'neither' }) {
  const { proof, supports } = props
  const items = proof.indications
    .filter((one) => one.supports === supports)
    .map(({ kind, at, text: said }) => (
      <>
        <strong>{t(`decisions.proof.kinds.${kind}`)}</strong> <Time iso={at} />
        <br />
        <Prose of={say(said)} />
      </>
    ))
  return (
    <div>
      <h3>{t(`decisions.proof.${supports}`)}</h3>
      {items.length === 0 ? (
        <p class="soft">{t('decisions.proof.none')}</p>
      ) : (
        <List items={items} />
      )}
    </div>
  )
}

export function SupportCard({ shown: { view, proof } }: { shown: ShownRefundPage }) {
  const { merchantCode: account, paymentId: payment, id, amount, currency } = view
  return (
    <Card title={t('decisions.support.title')}>
      <p>{t('decisions.support.lead')}</p>
      <p>
        {t('field.requestId')} <Identifier>{id}</Identifier>
      </p>
      <pre data-copy>
        {t('decisions.support.question', {
          account,
          payment,
          id,
          amount: formatMoney(amount, currency),
        })}
      </pre>
      <h3>{t('decisions.support.attempts')}</h3>
      <Rows
        caption={t('decisions.support.attempts')}
        {...{ columns: ATTEMPTS, rows: proof.attempts, empty: t('decisions.attempts.none') }}
      />
    </Card>
  )
}

const ATTEMPTS: readonly ListColumn<RefundProof['attempts'][number]>[] = [
  time('sentAt', ({ at }) => at),
  text('answer', describeAnswer),
  id('hmac', ({ bodyHmac }) => bodyHmac),
]

function describeAnswer({ outcome, code, ...attempt }: RefundProof['attempts'][number]): string {
  const message = attempt.message && say(attempt.message)
  if (outcome === null) return t('decisions.attempts.inProgress')
  if (outcome === 'unavailable') return withMore(t('decisions.attempts.unsent'), message)
  if (outcome === 'unknown') return withMore(t('decisions.attempts.unanswered'), message)
  return withMore(t('timeline.code', { code: code ?? '–' }), message)
}

const STEPS: readonly ListColumn<RefundProof['transitions'][number]>[] = [
  time('at', ({ at }) => at),
  text('before', ({ from }) => (from === null ? t('decisions.steps.begin') : nameStatus(from))),
  text('after', ({ to }) => nameStatus(to)),
  text('cause', ({ cause }) => say(cause)),
]

export const StepsCard = ({ proof: { transitions } }: { proof: RefundProof }) => (
  <TableCard {...{ title: t('decisions.steps.title'), columns: STEPS, rows: transitions }} />
)

function nameStatus(status: string): string {
  return status === 'sending' ? t('timeline.steps.sending') : nameKnown('states.refund', status)
}
