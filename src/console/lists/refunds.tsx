import { z } from '@hono/zod-openapi'
import { isUuid } from '../../http/fields.ts'
import { cutPage } from '../../http/list.ts'
import { Time } from '../../platform/html/components.tsx'
import { type FoundRefund, listRefunds } from '../../refunds/find.ts'
import { Refund, RefundState, type RefundView, showRefund } from '../../refunds/view.ts'
import { formatMoney } from '../format-money.ts'
import { nameAnchor, storyPath } from '../paths.ts'
import { RefundStatus } from '../states.tsx'
import { TEXTS } from '../texts/en.ts'
import { toRange } from '../words.ts'
import type { ListKind } from './list-kind.ts'

const { columns } = TEXTS.lists

/** Refunds, newest first. */
export const REFUNDS: ListKind<RefundView> = {
  name: 'refunds',
  scope: 'refunds:read',
  filters: [
    { name: 'status', kind: 'choice', choices: TEXTS.states.refund },
    { name: 'requestedBy', kind: 'text' },
    { name: 'orderId', kind: 'text' },
    { name: 'transactionId', kind: 'text' },
    { name: 'paymentId', kind: 'text' },
    { name: 'amount', kind: 'amount' },
    { name: 'from', kind: 'day' },
    { name: 'to', kind: 'day' },
  ],
  idForm: z.string().refine(isUuid),
  async load(ctx, { merchants, values, limit, after }) {
    const status = RefundState.optional().parse(values.status)
    const filter = { ...values, merchants, status, ...toRange(values) }
    const rows = await listRefunds(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, (found) => showRefund(ctx.encryption, found))
  },
  schema: Refund,
  columns: [
    { title: columns.id },
    { title: columns.status },
    { title: columns.amount, kind: 'number' },
    { title: columns.order },
    { title: columns.requestedBy },
    { title: columns.reason },
    { title: columns.account },
    { title: columns.time },
  ],
  show: (row) => [
    <a href={storyPath(row, nameAnchor('refund', row.id))}>{row.id}</a>,
    <RefundStatus status={row.status} />,
    formatMoney(row.amount, row.currency),
    row.orderId ?? '',
    row.requestedBy,
    row.reason ?? '',
    row.merchantCode,
    <Time iso={row.requestedAt} />,
  ],
}

const locate = ({ refund: { requestedAt, refundId, merchantCode } }: FoundRefund) => ({
  time: requestedAt,
  id: refundId,
  merchantCode,
})
