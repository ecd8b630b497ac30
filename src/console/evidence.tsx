import type { Child } from 'hono/jsx'
import { Card, Facts, Identifier } from '../platform/html/components.tsx'
import type { RefundIndication } from '../refunds/evidence.ts'
import type { RefundProof } from '../refunds/proof.ts'
import type { RefundView } from '../refunds/view.ts'
import { id, List, type ListColumn, Rows, State, Time, text, time } from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { HoldFacts } from './holds.tsx'
import { nameAnchor, storyPath } from './paths.ts'
import type { ShownRefundPage } from './refund-subject.ts'
import { Next } from './story-refunds.tsx'
import { formatMoney, t } from './view.ts'
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

type Fact = readonly [name: string, value: Child]

export function RefundFacts({ shown, ctx }: { shown: ShownRefundPage; ctx: ConsoleContext }) {
  const { view } = shown
  const rows = [...listRequest(shown, ctx), ...listResult(view)]
  return (
    <Card title={t('decisions.asked.title')}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
      {view.inferred ? <p class="soft">{t('refunds.inferred')}</p> : null}
      {view.selfDecided ? <p class="soft">{t('refunds.decision.self')}</p> : null}
      <p>
        <a href={storyPath(view, nameAnchor('refund', view.id))}>{t('decisions.asked.story')}</a>
      </p>
    </Card>
  )
}

function listRequest(shown: ShownRefundPage, ctx: ConsoleContext): Fact[] {
  const { view, payment, found } = shown
  const { amount, currency } = view
  const isHeld = view.hold !== null || view.accountHold !== null || payment.payment.hold !== null
  return [
    [t('field.status'), <State of={signRefund(view.status)} />],
    [t('field.nextStep'), <Next step={describeNext(found.refund, isHeld, ctx.config)} />],
    [t('field.amount'), formatMoney(amount, currency)],
    [t('field.receiver'), nameReceiver(shown)],
    [t('field.requestedBy'), nameRequester(view)],
    [t('field.requestedAt'), <Time iso={view.requestedAt} />],
    [t('field.reason'), view.reason],
    [t('field.payment'), <Identifier>{view.paymentId}</Identifier>],
    [t('field.paidAmount'), formatMoney(payment.payment.amount, currency)],
    [t('field.leftBeside'), formatMoney(payment.refundable, currency)],
    [t('field.method'), describeMethod(payment.payment.paymentMethod)],
    [t('field.order'), view.orderId],
    [t('field.account'), view.merchantCode],
    [t('field.requestId'), <Identifier>{view.id}</Identifier>],
  ]
}

function listResult(view: RefundView): Fact[] {
  const { failure, approval, resolution, hold, accountHold, fee, currency } = view
  const { gatewayReference, gatewayReferenceSource: source } = view
  return [
    [
      t('field.reference'),
      gatewayReference && (
        <>
          <Identifier>{gatewayReference}</Identifier>{' '}
          {source && t(`refunds.referenceSource.${source}`)}
        </>
      ),
    ],
    [t('field.fee'), fee && formatMoney(fee, currency)],
    [t('field.failure'), failure && describeFailure(failure)],
    [t('field.approval'), approval?.decision ? describeApproval(approval) : null],
    [t('field.decision'), resolution && describeResolution(resolution)],
    [t('field.hold'), hold && <HoldFacts hold={hold} />],
    [t('field.accountHold'), accountHold ? <HoldFacts hold={accountHold} /> : null],
  ]
}

/** Card payments go back the way they came. */
export function nameReceiver({ view, receiver }: ShownRefundPage): string {
  const to = receiver ?? view.receiver
  return to === null ? t('decisions.asked.sameWay') : describeReceiver(to)
}

export function describeEvents(
  { approval, resolution, failure }: RefundView,
  reader: string,
): string[] {
  const lines: string[] = []
  if (approval?.decision && approval.by !== null) {
    const { decision, by: name } = approval
    const own = decision === 'approved' ? 'youApproved' : 'youDeclined'
    const others = () => t(`decisions.happened.${decision}`, { name })
    lines.push(name === reader ? t(`decisions.happened.${own}`) : others())
  }
  if (resolution) {
    const { by: name } = resolution
    const outcome = nameKnown('decisions.outcomes', resolution.outcome)
    const others = () => t('decisions.happened.decided', { name, outcome })
    lines.push(name === reader ? t('decisions.happened.youDecided', { outcome }) : others())
  }
  return lines.length === 0 && failure ? [describeFailure(failure)] : lines
}

export function ProofCard({ proof }: { proof: RefundProof }) {
  const { indications, evidence } = proof
  const pick = (supports: RefundIndication['supports']) =>
    indications.filter((one) => one.supports === supports)
  return (
    <Card title={t('decisions.proof.title')} id="proof">
      <div class="sides">
        <Indications title={t('decisions.proof.succeeded')} rows={pick('succeeded')} />
        <Indications title={t('decisions.proof.failed')} rows={pick('failed')} />
      </div>
      {pick('neither').length === 0 ? null : (
        <Indications title={t('decisions.proof.neither')} rows={pick('neither')} />
      )}
      <h3>{t('decisions.proof.cause')}</h3>
      <p>{evidence}</p>
    </Card>
  )
}

function Indications({ title, rows }: { title: string; rows: readonly RefundIndication[] }) {
  return (
    <div>
      <h3>{title}</h3>
      {rows.length === 0 ? (
        <p class="soft">{t('decisions.proof.none')}</p>
      ) : (
        <List
          items={rows.map(({ kind, at, text }) => (
            <>
              <strong>{t(`decisions.proof.kinds.${kind}`)}</strong> <Time iso={at} />
              <br />
              {text}
            </>
          ))}
        />
      )}
    </div>
  )
}

/** What to ask the gateway's support, with the request id to quote and the times it was sent. */
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

function describeAnswer({ outcome, code, message }: RefundProof['attempts'][number]): string {
  if (outcome === null) return t('decisions.attempts.inProgress')
  if (outcome === 'unavailable') return withMore(t('decisions.attempts.unsent'), message)
  if (outcome === 'unknown') return withMore(t('decisions.attempts.unanswered'), message)
  return withMore(t('timeline.code', { code: code ?? '–' }), message)
}

const STEPS: readonly ListColumn<RefundProof['transitions'][number]>[] = [
  time('at', ({ at }) => at),
  text('from', ({ from }) => (from === null ? t('decisions.steps.begin') : nameStatus(from))),
  text('to', ({ to }) => nameStatus(to)),
  text('cause', ({ cause }) => cause),
]

export function StepsCard({ proof: { transitions } }: { proof: RefundProof }) {
  const title = t('decisions.steps.title')
  return (
    <Card title={title}>
      <Rows caption={title} columns={STEPS} rows={transitions} />
    </Card>
  )
}

function nameStatus(status: string): string {
  return status === 'sending' ? t('timeline.steps.sending') : nameKnown('states.refund', status)
}
