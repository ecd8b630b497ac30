import type { Child } from 'hono/jsx'
import type { Access } from '../../../access/types.ts'
import { describeDecidable, findObstacle, UNHINDERED } from '../../../decisions/obstacles.ts'
import { isOwnRequest } from '../../../decisions/second-person.ts'
import { DataTable } from '../../../platform/html/components.tsx'
import { toIso } from '../../../platform/postgres/row-set.ts'
import type { WaitingRefund } from '../../../refunds/find.ts'
import { Time } from '../../cells.tsx'
import type { ConsoleContext } from '../../context.ts'
import { formatMoney } from '../../format-money.ts'
import { refundPagePath } from '../../paths.ts'
import { RefundStatus } from '../../states.tsx'
import { t } from '../../view.ts'
import { formatDuration, formatTimeLeft } from '../../words.ts'

/** Where a cell of a refund that waits is written. */
type Environment = { ctx: Pick<ConsoleContext, 'config' | 'now'>; viewer: Access }

/** Refunds that wait for an approval. */
export function ApprovalTable(props: { rows: readonly WaitingRefund[]; of: Environment }) {
  const { rows, of } = props
  return (
    <DataTable
      caption={t('tasks.sections.approvals.title')}
      columns={[
        { title: t('field.refund') },
        { title: t('field.order') },
        { title: t('field.requestedBy') },
        { title: t('field.reason') },
        { title: t('field.since') },
        { title: t('decisions.notNow.title') },
      ]}
      rows={rows.map((row) => [
        ...describeRefund(row),
        <Asker row={row} />,
        row.reason ?? t('refunds.facts.noReason'),
        <Since row={row} of={of} />,
        explainApproval(row, of),
      ])}
    />
  )
}

/** Refunds whose evidence does not decide them. */
export function ReviewTable(props: { rows: readonly WaitingRefund[]; of: Environment }) {
  const { rows, of } = props
  return (
    <DataTable
      caption={t('tasks.sections.reviews.title')}
      columns={[
        { title: t('field.refund') },
        { title: t('field.order') },
        { title: t('field.reason') },
        { title: t('field.since') },
        { title: t('field.assignee') },
      ]}
      rows={rows.map((row) => [
        ...describeRefund(row),
        t(`tasks.review.${row.review ?? 'contradicted'}`),
        <Since row={row} of={of} />,
        row.assignee ?? t('decisions.review.unassigned'),
      ])}
    />
  )
}

/** Refunds that were sent long ago, without an outcome. */
export function OverdueTable(props: { rows: readonly WaitingRefund[]; of: Environment }) {
  const { rows, of } = props
  return (
    <DataTable
      caption={t('tasks.sections.overdue.title')}
      columns={[
        { title: t('field.refund') },
        { title: t('field.order') },
        { title: t('field.status') },
        { title: t('field.sent') },
        { title: t('decisions.notNow.title') },
        { title: t('field.assignee') },
      ]}
      rows={rows.map((row) => [
        ...describeRefund(row),
        row.status === 'sending' ? '' : <RefundStatus status={row.status} />,
        <Since row={row} of={of} />,
        explainWait(row, of),
        row.assignee ?? t('decisions.review.unassigned'),
      ])}
    />
  )
}

function describeRefund(row: WaitingRefund): Child[] {
  const { merchantCode, refundId, amount, currency, orderId } = row
  return [
    <a href={refundPagePath(merchantCode, refundId)}>{formatMoney(amount, currency)}</a>,
    orderId ?? t('states.notStated'),
  ]
}

function Asker({ row: { requestedBy, onBehalfOf } }: { row: WaitingRefund }) {
  if (onBehalfOf === null) return <>{requestedBy}</>
  return (
    <>
      {requestedBy} {t('tasks.forPerson', { person: onBehalfOf })}
    </>
  )
}

function Since({ row: { waitingSince }, of: { ctx } }: { row: WaitingRefund; of: Environment }) {
  const iso = toIso(waitingSince)
  return (
    <>
      <Time iso={iso} />{' '}
      <small class="soft">
        {t('tasks.age', { age: formatDuration(ctx.now().getTime() - Date.parse(iso)) })}
      </small>
    </>
  )
}

function explainApproval(row: WaitingRefund, { viewer }: Environment): string {
  if (isOwnRequest(viewer, row)) return t('tasks.own')
  return viewer.scopes.includes('refunds:approve')
    ? t('tasks.canDecide')
    : t('tasks.waitsForAnother')
}

function explainWait(row: WaitingRefund, { ctx }: Environment): string {
  const decidable = describeDecidable(row, ctx.now())
  const obstacle = findObstacle(decidable, 'succeeded', ctx.config, UNHINDERED)
  if (obstacle?.why !== 'too_early') return t('tasks.decidable')
  return t('tasks.decidableIn', { duration: formatTimeLeft(obstacle.leftMs) })
}
