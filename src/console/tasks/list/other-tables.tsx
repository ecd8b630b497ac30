import { type DiscrepancyRow, rateKind } from '../../../discrepancies/kinds.ts'
import { Badge, DataTable, Identifier, type Tone } from '../../../platform/html/components.tsx'
import { toIso } from '../../../platform/postgres/row-set.ts'
import type { TroubledEndpoint } from '../../../webhooks/delivery-log.ts'
import { Time } from '../../cells.tsx'
import type { ConsoleRequest } from '../../env.ts'
import { Form } from '../../forms/form.tsx'
import { discrepancyPath, storyPath } from '../../paths.ts'
import { TEXTS } from '../../texts/en.ts'
import { nameKind } from '../../words.ts'

const { columns, endpoint: texts } = TEXTS.tasks

const TONES: Record<ReturnType<typeof rateKind>, Tone> = {
  high: 'bad',
  medium: 'warn',
  low: 'soft',
}

/** Open discrepancies. */
export function DiscrepancyTable({ rows }: { rows: readonly DiscrepancyRow[] }) {
  return (
    <DataTable
      caption={TEXTS.tasks.sections.discrepancies.title}
      columns={[
        { title: columns.severity },
        { title: columns.kind },
        { title: columns.order },
        { title: columns.transaction },
        { title: columns.since },
        { title: columns.assignee },
      ]}
      rows={rows.map((row) => [
        <Badge tone={TONES[rateKind(row.kind)]}>
          {TEXTS.tasks.severities[rateKind(row.kind)]}
        </Badge>,
        <a href={discrepancyPath(row.merchantCode, row.id)}>{nameKind(row.kind)}</a>,
        row.orderId ?? TEXTS.tasks.noOrder,
        <a href={storyPath(row)}>{row.transactionId}</a>,
        <Time iso={toIso(row.at)} />,
        row.assignee ?? TEXTS.tasks.unassigned,
      ])}
    />
  )
}

/** Endpoints that fail or are disabled. */
export function EndpointTable(props: { c: ConsoleRequest; rows: readonly TroubledEndpoint[] }) {
  const { c, rows } = props
  return (
    <DataTable
      caption={TEXTS.tasks.sections.endpoints.title}
      columns={[
        { title: columns.endpoint },
        { title: columns.failing },
        { title: columns.answer },
        { title: columns.nextAttempt },
        { title: columns.event },
        { title: columns.actions, kind: 'actions' },
      ]}
      rows={rows.map((row) => [
        <Identifier>{row.url}</Identifier>,
        <Failing row={row} />,
        <Answer row={row} />,
        <NextAttempt row={row} />,
        <NewestEvent row={row} />,
        <Form c={c} action={`/console/webhooks/${encodeURIComponent(row.id)}/enable`}>
          <button type="submit">{texts.enable}</button>
        </Form>,
      ])}
    />
  )
}

function Failing({ row: { failingSince, disabledAt, disabledReason } }: { row: TroubledEndpoint }) {
  const since = failingSince ?? disabledAt
  return (
    <>
      {since === null ? null : <Time iso={toIso(since)} />}{' '}
      {disabledReason === null ? null : texts.disabled[disabledReason]}
    </>
  )
}

function Answer({ row: { httpStatus, error, answer } }: { row: TroubledEndpoint }) {
  return (
    <>
      {httpStatus === null ? texts.noAnswer : texts.status(httpStatus)}{' '}
      <small class="soft">{answer || error}</small>
    </>
  )
}

function NextAttempt({ row: { nextAttemptAt, disabledAt, pending } }: { row: TroubledEndpoint }) {
  return (
    <>
      {disabledAt !== null ? (
        texts.never
      ) : nextAttemptAt === null ? (
        texts.atOnce
      ) : (
        <Time iso={toIso(nextAttemptAt)} />
      )}{' '}
      <small class="soft">{texts.pending(pending)}</small>
    </>
  )
}

function NewestEvent({ row: { transactionId, eventMerchantCode } }: { row: TroubledEndpoint }) {
  if (transactionId === null) return null
  if (eventMerchantCode === null) return <Identifier>{transactionId}</Identifier>
  return <a href={storyPath({ merchantCode: eventMerchantCode, transactionId })}>{transactionId}</a>
}
