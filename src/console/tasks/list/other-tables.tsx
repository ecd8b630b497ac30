import { type DiscrepancyRow, rateKind } from '../../../discrepancies/kinds.ts'
import { Badge, DataTable, Identifier, type Tone } from '../../../platform/html/components.tsx'
import { toIso } from '../../../platform/postgres/row-set.ts'
import type { TroubledEndpoint } from '../../../webhooks/delivery-log.ts'
import { Time } from '../../cells.tsx'
import type { ConsoleRequest } from '../../env.ts'
import { Form } from '../../forms/form.tsx'
import { discrepancyPath, storyPath } from '../../paths.ts'
import { count, t } from '../../view.ts'
import { nameKind } from '../../words.ts'

const TONES: Record<ReturnType<typeof rateKind>, Tone> = {
  high: 'bad',
  medium: 'warn',
  low: 'soft',
}

/** Open discrepancies. */
export function DiscrepancyTable({ rows }: { rows: readonly DiscrepancyRow[] }) {
  return (
    <DataTable
      caption={t('tasks.sections.discrepancies.title')}
      columns={[
        { title: t('field.severity') },
        { title: t('field.kind') },
        { title: t('field.order') },
        { title: t('field.transaction') },
        { title: t('field.since') },
        { title: t('field.assignee') },
      ]}
      rows={rows.map((row) => [
        <Badge tone={TONES[rateKind(row.kind)]}>
          {t(`tasks.severities.${rateKind(row.kind)}`)}
        </Badge>,
        <a href={discrepancyPath(row.merchantCode, row.id)}>{nameKind(row.kind)}</a>,
        row.orderId ?? t('states.notStated'),
        <a href={storyPath(row)}>{row.transactionId}</a>,
        <Time iso={toIso(row.at)} />,
        row.assignee ?? t('decisions.review.unassigned'),
      ])}
    />
  )
}

/** Endpoints that fail or are disabled. */
export function EndpointTable(props: { c: ConsoleRequest; rows: readonly TroubledEndpoint[] }) {
  const { c, rows } = props
  return (
    <DataTable
      caption={t('tasks.sections.endpoints.title')}
      columns={[
        { title: t('field.address') },
        { title: t('field.since') },
        { title: t('field.result') },
        { title: t('field.next') },
        { title: t('field.event') },
        { title: t('field.actions'), kind: 'actions' },
      ]}
      rows={rows.map((row) => [
        <Identifier>{row.url}</Identifier>,
        <Failing row={row} />,
        <Answer row={row} />,
        <NextAttempt row={row} />,
        <NewestEvent row={row} />,
        <Form c={c} action={`/console/webhooks/${encodeURIComponent(row.id)}/enable`}>
          <button type="submit">{t('tasks.endpoint.enable')}</button>
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
      {disabledReason === null ? null : t(`tasks.endpoint.disabled.${disabledReason}`)}
    </>
  )
}

function Answer({ row: { httpStatus, error, answer } }: { row: TroubledEndpoint }) {
  return (
    <>
      {httpStatus === null
        ? t('tasks.endpoint.noAnswer')
        : t('tasks.endpoint.status', { status: httpStatus })}{' '}
      <small class="soft">{answer || error}</small>
    </>
  )
}

function NextAttempt({ row: { nextAttemptAt, disabledAt, pending } }: { row: TroubledEndpoint }) {
  return (
    <>
      {disabledAt !== null ? (
        t('tasks.endpoint.never')
      ) : nextAttemptAt === null ? (
        t('tasks.endpoint.atOnce')
      ) : (
        <Time iso={toIso(nextAttemptAt)} />
      )}{' '}
      <small class="soft">
        {pending >= 100
          ? t('tasks.endpoint.pendingMost')
          : count('tasks.endpoint.pending', pending)}
      </small>
    </>
  )
}

function NewestEvent({ row: { transactionId, eventMerchantCode } }: { row: TroubledEndpoint }) {
  if (transactionId === null) return null
  if (eventMerchantCode === null) return <Identifier>{transactionId}</Identifier>
  return <a href={storyPath({ merchantCode: eventMerchantCode, transactionId })}>{transactionId}</a>
}
