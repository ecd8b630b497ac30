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
import { TEXTS } from '../../texts/en.ts'
import { formatDuration, formatTimeLeft } from '../../words.ts'

const { columns } = TEXTS.tasks

/** Where a cell of a refund that waits is written. */
type Environment = { ctx: Pick<ConsoleContext, 'config' | 'now'>; viewer: Access }

/** Refunds that wait for an approval. */
export function ApprovalTable(props: { rows: readonly WaitingRefund[]; of: Environment }) {
  const { rows, of } = props
  return (
    <DataTable
      caption={TEXTS.tasks.sections.approvals.title}
      columns={[
        { title: columns.refund },
        { title: columns.order },
        { title: columns.askedBy },
        { title: columns.reason },
        { title: columns.since },
        { title: columns.note },
      ]}
      rows={rows.map((row) => [
        ...describeRefund(row),
        <Asker row={row} />,
        row.reason ?? TEXTS.tasks.noReason,
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
      caption={TEXTS.tasks.sections.reviews.title}
      columns={[
        { title: columns.refund },
        { title: columns.order },
        { title: columns.reason },
        { title: columns.since },
        { title: columns.assignee },
      ]}
      rows={rows.map((row) => [
        ...describeRefund(row),
        TEXTS.tasks.review[row.review ?? 'contradicted'],
        <Since row={row} of={of} />,
        row.assignee ?? TEXTS.tasks.unassigned,
      ])}
    />
  )
}

/** Refunds that were sent long ago, without an outcome. */
export function OverdueTable(props: { rows: readonly WaitingRefund[]; of: Environment }) {
  const { rows, of } = props
  return (
    <DataTable
      caption={TEXTS.tasks.sections.overdue.title}
      columns={[
        { title: columns.refund },
        { title: columns.order },
        { title: columns.status },
        { title: columns.sent },
        { title: columns.note },
        { title: columns.assignee },
      ]}
      rows={rows.map((row) => [
        ...describeRefund(row),
        row.status === 'sending' ? '' : <RefundStatus status={row.status} />,
        <Since row={row} of={of} />,
        explainWait(row, of),
        row.assignee ?? TEXTS.tasks.unassigned,
      ])}
    />
  )
}

function describeRefund(row: WaitingRefund): Child[] {
  const { merchantCode, refundId, amount, currency, orderId } = row
  return [
    <a href={refundPagePath(merchantCode, refundId)}>{formatMoney(amount, currency)}</a>,
    orderId ?? TEXTS.tasks.noOrder,
  ]
}

function Asker({ row: { requestedBy, onBehalfOf } }: { row: WaitingRefund }) {
  if (onBehalfOf === null) return <>{requestedBy}</>
  return (
    <>
      {requestedBy} {TEXTS.tasks.forPerson(onBehalfOf)}
    </>
  )
}

function Since({ row: { waitingSince }, of: { ctx } }: { row: WaitingRefund; of: Environment }) {
  const iso = toIso(waitingSince)
  return (
    <>
      <Time iso={iso} />{' '}
      <small class="soft">
        {TEXTS.tasks.age(formatDuration(ctx.now().getTime() - Date.parse(iso)))}
      </small>
    </>
  )
}

function explainApproval(row: WaitingRefund, { viewer }: Environment): string {
  const { own, canDecide, waitsForAnother } = TEXTS.tasks
  if (isOwnRequest(viewer, row)) return own
  return viewer.scopes.includes('refunds:approve') ? canDecide : waitsForAnother
}

function explainWait(row: WaitingRefund, { ctx }: Environment): string {
  const decidable = describeDecidable(row, ctx.now())
  const obstacle = findObstacle(decidable, 'succeeded', ctx.config, UNHINDERED)
  if (obstacle?.why !== 'too_early') return TEXTS.tasks.decidable
  return TEXTS.tasks.decidableIn(formatTimeLeft(obstacle.leftMs))
}
