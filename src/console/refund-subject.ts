import { narrowMerchants } from '../access/authenticate.ts'
import { listDeciders } from '../access/principal.ts'
import { type RefundReview, readRefundReview } from '../decisions/discrepancies.ts'
import {
  type Circumstances,
  type DecidableRefund,
  describeDecidable,
} from '../decisions/obstacles.ts'
import { findMayRelease, type MayEnd, readStanding } from '../decisions/second-person.ts'
import { readShownVersion } from '../decisions/unit-of-work.ts'
import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { listOfTransaction } from '../discrepancies/store.ts'
import { type FoundPayment, findPayment } from '../payments/find-payments.ts'
import { isNotified, readGrowth } from '../refunds/evidence.ts'
import { type FoundRefund, findRefund } from '../refunds/find.ts'
import { mayBeItsOwnGrowth } from '../refunds/measure.ts'
import { type RefundProof, readProof } from '../refunds/proof.ts'
import { decryptReceiver, type Receiver } from '../refunds/receiver.ts'
import { type RefundView, showRefund } from '../refunds/view.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'
import { can } from './view.ts'

/** Discrepancies of a transaction that are looked through for those of one refund. */
const MAX_DISCREPANCIES = 50

/** Everything the page of a refund shows. */
export type ShownRefundPage = {
  found: FoundRefund
  view: RefundView
  payment: FoundPayment
  /** Of what people decide by: a decision carries it, and is refused when it has changed. */
  version: string
  proof: RefundProof
  review: RefundReview
  /** Open discrepancies about this refund. */
  discrepancies: DiscrepancyRow[]
  decidable: DecidableRefund
  /** How the person stands to it, and what else may be in the way of a decision. */
  beside: Circumstances
  /** Whole while it waits, for who asked for it and who may approve it; undefined for everybody else. */
  receiver: Receiver | undefined
  /** Whether the person may release its hold; undefined where there is none, or without the scope `ops`. */
  mayRelease: MayEnd | undefined
  /** Who may take care of it. */
  deciders: string[]
}

/**
 * Finds the refund in the path, of an account that the person may see.
 * @throws DomainError `refund_not_found`
 */
export async function findPathRefund(ctx: ConsoleContext, c: ConsoleRequest): Promise<FoundRefund> {
  const { merchant, refundId = '' } = c.req.param()
  return await findRefund(ctx, narrowMerchants(c.get('access'), merchant), refundId)
}

/** Reads everything the page of a refund shows. The version comes first: what changes later makes it outdated. */
export async function readRefundPage(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  key: { merchantCode: string; refundId: string },
): Promise<ShownRefundPage> {
  const access = c.get('access')
  const { merchantCode, refundId } = key
  const version = await readShownVersion(ctx.sql, key)
  const found = await findRefund(ctx, [merchantCode], refundId)
  const { refund } = found
  const isHeld = refund.hold !== null && can('ops')
  const held = { merchantCode, target: 'refund' as const, id: refundId }
  const [payment, proof, review, all, deciders, mayRelease] = await Promise.all([
    findPayment(ctx, [merchantCode], refund.paymentId),
    readProof(ctx, found),
    readRefundReview(ctx, refund),
    listOfTransaction(ctx.sql, refund, MAX_DISCREPANCIES),
    listDeciders(ctx.sql, merchantCode),
    isHeld ? findMayRelease(ctx.sql, access, held) : undefined,
  ])
  const growth = await readGrowth(ctx.sql, refund)
  const standing = await readStanding(ctx.sql, refund, access)
  return {
    ...{ found, payment, version, proof, review, deciders, mayRelease },
    receiver: standing.asked || can('refunds:approve') ? readReceiver(ctx, found) : undefined,
    beside: {
      ...standing,
      notified: await isNotified(ctx.sql, refund),
      grown: growth !== undefined && mayBeItsOwnGrowth(growth.unmatched, refund),
    },
    view: showRefund(ctx.encryption, found),
    discrepancies: all.filter((one) => one.refundId === refundId && one.resolvedAt === null),
    decidable: describeDecidable(refund, ctx.now()),
  }
}

/** Statuses of a refund that was not sent: people compare its receiver with what the customer wrote. */
const WAITING: readonly string[] = ['awaiting_approval', 'pending']

function readReceiver(
  { encryption }: Pick<ConsoleContext, 'encryption'>,
  { refund: { status, receiver, refundId } }: FoundRefund,
): Receiver | undefined {
  if (receiver === null || !WAITING.includes(status)) return undefined
  return decryptReceiver(encryption, receiver, 'receiver', refundId)
}
