import { Card, Identifier } from '../platform/html/components.tsx'
import type { RefundIndication } from '../refunds/evidence.ts'
import type { RefundProof } from '../refunds/proof.ts'
import { cell, type ListColumn, Rows, Time, text, time } from './cells.tsx'
import { formatMoney } from './format-money.ts'
import type { ShownRefundPage } from './refund-subject.ts'
import { t } from './view.ts'
import { nameKnown, withMore } from './words.ts'

/** What speaks for each outcome, beside the decision. */
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
        <ul>
          {rows.map(({ kind, at, text }) => (
            <li>
              <strong>{t(`decisions.proof.kinds.${kind}`)}</strong> <Time iso={at} />
              <br />
              {text}
            </li>
          ))}
        </ul>
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
  cell(
    'hmac',
    ({ bodyHmac }) => bodyHmac,
    ({ bodyHmac }) => <Identifier>{bodyHmac}</Identifier>,
  ),
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

/** Every change of its status, oldest first. */
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
