import { Card, DataTable, Identifier } from '../../../platform/html/components.tsx'
import type { RefundIndication, RefundProof } from '../../../refunds/evidence.ts'
import { Time } from '../../cells.tsx'
import { formatMoney } from '../../format-money.ts'
import { TEXTS } from '../../texts/en.ts'
import type { ShownRefundPage } from './read-refund.ts'

const texts = TEXTS.decisions

/** What speaks for each outcome, beside the decision. */
export function ProofCard({ proof }: { proof: RefundProof }) {
  const { indications, evidence } = proof
  const pick = (supports: RefundIndication['supports']) =>
    indications.filter((one) => one.supports === supports)
  return (
    <Card title={texts.proof.title} id="proof">
      <div class="sides">
        <Indications title={texts.proof.succeeded} rows={pick('succeeded')} />
        <Indications title={texts.proof.failed} rows={pick('failed')} />
      </div>
      {pick('neither').length === 0 ? null : (
        <Indications title={texts.proof.neither} rows={pick('neither')} />
      )}
      <h3>{texts.proof.cause}</h3>
      <p>{evidence}</p>
    </Card>
  )
}

function Indications({ title, rows }: { title: string; rows: readonly RefundIndication[] }) {
  return (
    <div>
      <h3>{title}</h3>
      {rows.length === 0 ? (
        <p class="soft">{texts.proof.none}</p>
      ) : (
        <ul>
          {rows.map(({ kind, at, text }) => (
            <li>
              <strong>{texts.proof.kinds[kind]}</strong> <Time iso={at} />
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
    <Card title={texts.support.title}>
      <p>{texts.support.lead}</p>
      <p>
        {texts.support.requestId} <Identifier>{id}</Identifier>
      </p>
      <pre data-copy>
        {texts.support.question({ account, payment, id, amount: formatMoney(amount, currency) })}
      </pre>
      <h3>{texts.support.attempts}</h3>
      <Attempts proof={proof} />
    </Card>
  )
}

function Attempts({ proof: { attempts } }: { proof: RefundProof }) {
  if (attempts.length === 0) return <p class="soft">{texts.attempts.none}</p>
  const { at, answer, hash } = texts.attempts
  return (
    <DataTable
      caption={texts.support.attempts}
      columns={[{ title: at }, { title: answer }, { title: hash }]}
      rows={attempts.map((one) => [
        <Time iso={one.at} />,
        describeAnswer(one),
        <Identifier>{one.bodyHmac}</Identifier>,
      ])}
    />
  )
}

function describeAnswer({ outcome, code, message }: RefundProof['attempts'][number]): string {
  const words = message ?? ''
  if (outcome === null) return texts.attempts.inProgress
  if (outcome === 'unavailable') return texts.attempts.unsent(words)
  if (outcome === 'unknown') return texts.attempts.unanswered(words)
  return texts.attempts.answered(code, words)
}

/** Every change of its status, oldest first. */
export function StepsCard({ proof: { transitions } }: { proof: RefundProof }) {
  const { title, at, from, to, cause, begin } = texts.steps
  return (
    <Card title={title}>
      <DataTable
        caption={title}
        columns={[{ title: at }, { title: from }, { title: to }, { title: cause }]}
        rows={transitions.map((one) => [
          <Time iso={one.at} />,
          one.from === null ? begin : nameStatus(one.from),
          nameStatus(one.to),
          one.cause,
        ])}
      />
    </Card>
  )
}

function nameStatus(status: string): string {
  const { sending } = texts.steps
  const known = Object.entries({ ...TEXTS.states.refund, sending }).find(
    ([name]) => name === status,
  )
  return known?.[1] ?? TEXTS.states.unknown(status)
}
