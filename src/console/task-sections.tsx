import type { Child } from 'hono/jsx'
import { z } from 'zod'
import type { Scope } from '../access/keys.ts'
import { readPage } from '../access/listing.ts'
import type { Access } from '../access/types.ts'
import type { OrderFacts } from '../db/order-facts.ts'
import { describeDecidable, findObstacle, UNHINDERED } from '../decisions/obstacles.ts'
import { isOwnRequest } from '../decisions/second-person.ts'
import { type DiscrepancyKind, type DiscrepancyRow, rateKind } from '../discrepancies/kinds.ts'
import { listOpenDiscrepancies, OPEN_PAGE } from '../discrepancies/store.ts'
import { cutPage, type Page, type Position } from '../http/list.ts'
import { Identifier, type Tone } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import {
  listRefunds,
  listWaitingRefunds,
  type RefundRecord,
  WAITING_PAGE,
  type WaitingRefund,
  type WaitingStatus,
} from '../refunds/find.ts'
import { STATES } from '../refunds/lifecycle.ts'
import { readSurplus } from '../refunds/surplus.ts'
import { listVisibleOwners } from '../webhooks/endpoints.ts'
import { listTroubledEndpoints, type TroubledEndpoint } from '../webhooks/log.ts'
import { findWithdrawn } from './audit-list.ts'
import { cell, id, type ListColumn, link, Rows, state, Time, text, time } from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { ActionForm } from './forms.tsx'
import { discrepancyPath, refundPagePath, storyPath } from './paths.ts'
import { nameReason } from './reasons.tsx'
import type { NameIn } from './texts/text.ts'
import { count, formatMoney, t } from './view.ts'
import { formatDuration, formatTimeLeft, nameKind, nameRequester, signRefund } from './words.ts'

type Given = { ctx: ConsoleContext; access: Access; cursor: string | undefined }

export type Section = {
  name: SectionName
  scopes: readonly Scope[]
  lead(ctx: ConsoleContext): string
  load(given: Given): Promise<{
    count: number
    nextCursor: string | null
    table(limit: number): Child
  }>
}

type Behind<Key> = Key extends `${infer Name}.title` ? Name : never

export type SectionName = Behind<NameIn<'tasks.sections'>>

function define<Row>(
  name: SectionName,
  scopes: readonly Scope[],
  read: (given: Given) => Promise<Page<Row>>,
  columns: (given: Given) => readonly ListColumn<Row>[],
  lead?: (ctx: ConsoleContext) => string,
): Section {
  return {
    name,
    scopes,
    lead: lead ?? (() => (name === 'overdue' ? '' : t(`tasks.sections.${name}.lead`))),
    async load(given) {
      const { data, nextCursor } = await read(given)
      const caption = t(`tasks.sections.${name}.title`)
      const table = (limit: number) => (
        <Rows {...{ caption, columns: columns(given), rows: data.slice(0, limit) }} />
      )
      return { count: data.length, nextCursor, table }
    },
  }
}

/** After this time (ms) a refund without an outcome is worth a look, even if nobody can decide it yet. */
const OVERDUE_MS = 86_400_000

const readOverdueMs = ({ config }: ConsoleContext) =>
  Math.min(OVERDUE_MS, config.REFUND_RESOLVE_FOR_MS)

type Refund = RefundRecord['refund'] & OrderFacts

const ORDER = text<OrderFacts>('order', ({ orderId }) => orderId ?? t('states.notStated'))
const REFUND: readonly ListColumn<Refund>[] = [
  link('refund', ({ amount, currency, merchantCode, refundId }) => [
    formatMoney(amount, currency),
    refundPagePath(merchantCode, refundId),
  ]),
  ORDER,
]
const STATUS = state<Refund>('status', ({ status }) => signRefund(STATES[status].shown))
const REASON = text<Refund>('reason', ({ reason }) =>
  reason ? nameReason(reason) : t('refunds.facts.noReason'),
)
const SINCE = time<WaitingRefund>('since', ({ waitingSince }) => toIso(waitingSince))
const ASSIGNEE = text<{ assignee: string | null }>(
  'assignee',
  ({ assignee }) => assignee ?? t('decisions.review.unassigned'),
)

const TONES: Record<ReturnType<typeof rateKind>, Tone> = {
  high: 'bad',
  medium: 'warn',
  low: 'soft',
}

const ENDPOINTS: readonly ListColumn<TroubledEndpoint>[] = [
  id('address', ({ url }) => url),
  cell('since', ({ failingSince, disabledAt, disabledReason }) => {
    const since = failingSince ?? disabledAt
    return (
      <>
        {since && <Time iso={toIso(since)} />}{' '}
        {disabledReason && t(`tasks.endpoint.disabled.${disabledReason}`)}
      </>
    )
  }),
  cell('answer', ({ httpStatus: status, error, answer }) => (
    <>
      {status === null ? t('tasks.endpoint.noAnswer') : t('tasks.endpoint.status', { status })}{' '}
      <small class="soft">{answer || error}</small>
    </>
  )),
  cell('next', ({ nextAttemptAt: at, disabledAt, pending }) => (
    <>
      {disabledAt !== null ? t('tasks.endpoint.never') : null}
      {disabledAt === null ? at ? <Time iso={toIso(at)} /> : t('tasks.endpoint.atOnce') : null}{' '}
      <small class="soft">
        {pending >= 100
          ? t('tasks.endpoint.pendingMost')
          : count('tasks.endpoint.pending', pending)}
      </small>
    </>
  )),
  cell('event', ({ transactionId, eventMerchantCode: merchantCode }) => {
    if (transactionId === null) return null
    if (merchantCode === null) return <Identifier>{transactionId}</Identifier>
    return <a href={storyPath({ merchantCode, transactionId })}>{transactionId}</a>
  }),
  cell(
    'actions',
    (one) => (
      <ActionForm
        action={`/console/webhooks/${encodeURIComponent(one.id)}/enable`}
        submit={t('tasks.endpoint.enable')}
      />
    ),
    { kind: 'actions' },
  ),
]

/** The kinds of discrepancies whose surplus an agent refunds. */
const PAID_TWICE: readonly DiscrepancyKind[] = ['order_paid_twice', 'duplicate_payment']

export const SECTIONS: readonly Section[] = [
  define('paidTwice', ['refunds:write'], readPaidTwice, ({ ctx }) => [
    ORDER,
    link('transaction', (one) => [one.transactionId, storyPath(one)]),
    cell('surplus', (one) => <Surplus {...{ ctx, one }} />, { kind: 'number' }),
    time('time', ({ at }) => toIso(at)),
    ASSIGNEE,
  ]),
  define('own', ['refunds:write'], readOwn, () => [
    ...REFUND,
    STATUS,
    REASON,
    time('requestedAt', ({ requestedAt }) => toIso(requestedAt)),
  ]),
  define(
    'approvals',
    ['refunds:approve', 'refunds:write'],
    readWaiting(['awaiting_approval']),
    ({ access }) => [
      ...REFUND,
      text('requestedBy', nameRequester),
      REASON,
      SINCE,
      text('nextStep', (row) => explainApproval(row, access)),
    ],
  ),
  define('reviews', ['ops'], readWaiting(['needs_review', 'returned']), () => [
    ...REFUND,
    text('reason', ({ status, review }) =>
      t(`tasks.review.${status === 'returned' ? status : (review ?? 'contradicted')}`),
    ),
    SINCE,
    ASSIGNEE,
  ]),
  define(
    'overdue',
    ['ops'],
    readWaiting(['accepted', 'unknown'], readOverdueMs),
    ({ ctx }) => [
      ...REFUND,
      STATUS,
      time('sent', ({ waitingSince }) => toIso(waitingSince)),
      text('nextStep', (row) => explainWait(row, ctx)),
      ASSIGNEE,
    ],
    (ctx) => t('tasks.sections.overdue.lead', { age: formatDuration(readOverdueMs(ctx)) }),
  ),
  define('discrepancies', ['ops'], readDiscrepancies(), () => [
    state('severity', ({ kind }) => [
      t(`tasks.severities.${rateKind(kind)}`),
      TONES[rateKind(kind)],
    ]),
    link('kind', (one) => [nameKind(one.kind), discrepancyPath(one.merchantCode, one.id)]),
    ORDER,
    link('transaction', (one) => [one.transactionId, storyPath(one)]),
    time('time', ({ at }) => toIso(at)),
    ASSIGNEE,
  ]),
  define('endpoints', ['webhooks:write'], readEndpoints, () => ENDPOINTS),
]

type OpenDiscrepancy = DiscrepancyRow & OrderFacts

/** What is left of the surplus: a refund that is under way is no longer a task. */
async function Surplus({ ctx, one }: { ctx: ConsoleContext; one: OpenDiscrepancy }) {
  const surplus = await readSurplus(ctx.db.sql, one)
  return <>{surplus ? formatMoney(surplus, one.currency) : t('tasks.surplus.none')}</>
}

/** The transactions of an order tell of the same double payment, so only the one found first is listed. */
async function readPaidTwice(given: Given): Promise<Page<OpenDiscrepancy>> {
  const { data, nextCursor } = await readDiscrepancies(PAID_TWICE)(given)
  const orderOf = ({ merchantCode, orderId, transactionId }: OpenDiscrepancy) =>
    JSON.stringify(orderId === null ? [merchantCode, null, transactionId] : [merchantCode, orderId])
  const byOrder = new Map(data.toReversed().map((one) => [orderOf(one), one]))
  return { data: [...byOrder.values()].toReversed(), nextCursor }
}

/** How long (ms) a person is shown a refund that they asked for. */
const OWN_FOR_MS = 7 * 86_400_000

/** Reads the refunds that the person asked for lately and that did not arrive. */
async function readOwn({ ctx, access }: Given) {
  const { merchants, name: requestedBy } = access
  const from = new Date(ctx.now().getTime() - OWN_FOR_MS).toISOString()
  const read = (status: 'failed' | 'returned') =>
    listRefunds(ctx, { merchants, requestedBy, status, from }, WAITING_PAGE, undefined)
  const [failed, returned] = await Promise.all([read('failed'), read('returned')])
  const cancelled = failed.rows.filter(({ refund }) => refund.failureReason === 'cancelled')
  const ids = cancelled.map(({ refund }) => refund.refundId)
  const withdrawn = await findWithdrawn(ctx.db.sql, access, ids)
  const rows = [...returned.rows, ...failed.rows]
    .filter(({ refund }) => !withdrawn.has(refund.refundId))
    .slice(0, WAITING_PAGE)
  return { data: rows.map(({ refund, order }) => ({ ...refund, ...order })), nextCursor: null }
}

/** @param readMs returns the least time that they have waited */
function readWaiting(statuses: readonly WaitingStatus[], readMs = (_: ConsoleContext) => 0) {
  const locate = ({ waitingSince, refundId: id, merchantCode }: WaitingRefund): Position => {
    return { time: waitingSince, id, merchantCode }
  }
  return async ({ ctx, access: { merchants }, cursor }: Given) =>
    await readPage(ctx.db.sql, cursor, z.uuid(), async (after) => {
      const filter = { merchants, statuses, forMs: readMs(ctx) }
      const rows = await listWaitingRefunds(ctx, filter, after)
      return cutPage({ rows }, WAITING_PAGE, locate, (row) => row)
    })
}

/** The order is by kind, so the kind belongs to the position. */
function readDiscrepancies(only?: readonly DiscrepancyKind[]) {
  const locate = ({ at, kind, id, merchantCode }: OpenDiscrepancy): Position => {
    return { time: at, id: `${kind} ${id}`, merchantCode }
  }
  return async ({ ctx, access: { merchants }, cursor }: Given) =>
    await readPage(ctx.db.sql, cursor, z.string().regex(/^\w+ \d{1,18}$/), async (after) => {
      const [kind = '', id = ''] = after?.id.split(' ') ?? []
      const filter = { merchants, ...(only ? { only } : {}) }
      const rows = await listOpenDiscrepancies(ctx, filter, after && { ...after, kind, id })
      return cutPage({ rows }, OPEN_PAGE, locate, (row) => row)
    })
}

/** More failing endpoints are one problem, not many. */
const MAX_ENDPOINTS = 50

async function readEndpoints({ ctx, access }: Given): Promise<Page<TroubledEndpoint>> {
  const owners = listVisibleOwners(access, undefined)
  return { data: await listTroubledEndpoints(ctx, owners, MAX_ENDPOINTS), nextCursor: null }
}

function explainApproval(row: WaitingRefund, viewer: Access): string {
  if (isOwnRequest(viewer, row)) return t('tasks.own')
  return t(viewer.scopes.includes('refunds:approve') ? 'tasks.canDecide' : 'tasks.waitsForAnother')
}

function explainWait(row: WaitingRefund, ctx: ConsoleContext): string {
  const decidable = describeDecidable(row, ctx.now())
  const obstacle = findObstacle(decidable, 'succeeded', ctx.config, UNHINDERED)
  if (obstacle?.why !== 'too_early') return t('tasks.decidable')
  return t('tasks.decidableIn', { duration: formatTimeLeft(obstacle.leftMs) })
}
