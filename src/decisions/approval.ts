import { describeActor, recordWrite } from '../access/audit.ts'
import { foldName } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import { DomainError } from '../errors.ts'
import { recordChanges, recordEvents } from '../events/record-events.ts'
import { violatesConstraint } from '../platform/postgres/errors.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockRefunds } from '../refunds/case.ts'
import { scheduleReceiverErasure } from '../refunds/deadlines.ts'
import { saveDraft } from '../refunds/draft.ts'
import { buildRefundEvent, readRefunds } from '../refunds/events.ts'
import { isNotified } from '../refunds/evidence.ts'
import type { RefundRecord } from '../refunds/find.ts'
import {
  move,
  type RefundDraft,
  type RefundRow,
  STATES,
  sendToReview,
  startDraft,
} from '../refunds/lifecycle.ts'
import { explainMayHaveMoved, formatApproved, refuseOwnGrowth } from '../refunds/obstacle.ts'
import { decryptReceiver } from '../refunds/receiver.ts'
import type { LockedRefunds } from '../refunds/types.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'
import { lockTransaction, requireShownVersion } from './unit-of-work.ts'

export type ApprovalDecision = {
  decision: 'approve' | 'decline'
  reason?: string | undefined
  /** The version that the person was shown (`readShownVersion`): of a refund that has changed since nothing is decided. */
  shown?: string | undefined
}

const OPERATIONS = {
  approve: 'POST /v1/refunds/{refundId}/approval',
  decline: 'POST /v1/refunds/{refundId}/decline',
}

/** Whether `decided_by` is the name of a person and not of a key, in SQL. */
const BY_PERSON = `decided_principal = 'person:' || folded_decided_by`

/** The invariant that whoever asked for a refund does not decide about its approval. */
const BY_ANOTHER = 'refunds_decided_by_another'

/**
 * Approves or declines a refund that awaits approval. An approved one becomes `pending` and is sent only as it is
 * now; a declined one has failed. The database refuses the principal that asked for it, and whoever it was asked
 * for.
 * @throws DomainError `not_awaiting_approval`, with what was decided, or as `ChangedSinceShownError`; `same_person`;
 *   `growth_may_be_its_own` for a decline while its payment has grown by its amount without a known refund that explains
 *   it; `unauthenticated` when the key was revoked meanwhile; or `unavailable` when its receiver cannot be read or its payment is moving to another transaction
 */
export async function decideApproval(
  ctx: Context,
  { refund }: RefundRecord,
  { decision, reason, shown }: ApprovalDecision,
  access: Access,
): Promise<void> {
  const { merchantCode, refundId } = refund
  try {
    await runInTransaction(ctx.sql, async (tx) => {
      const { row, locked } = await lockAwaiting(ctx, tx, refund)
      await requireShownVersion(tx, row, shown, 'not_awaiting_approval')
      await (decision === 'approve'
        ? approve(ctx, tx, row, { access, reason })
        : decline(ctx, tx, row, { access, reason }, locked))
      await recordDecision(ctx, tx, row, { access, operation: OPERATIONS[decision] })
    })
  } catch (error) {
    if (!violatesConstraint(error, BY_ANOTHER)) throw error
    throw refuseSame(refundId, decision)
  }
  const { name, requestId } = access
  ctx.log.info(
    { merchantCode, refundId, decision, key: name, requestId },
    'refund approval decided',
  )
}

function refuseSame(refundId: string, decision: ApprovalDecision['decision']): DomainError {
  const detail = `Refund ${refundId} was requested by you or for you: a second person has to ${decision} it`
  return new DomainError('same_person', detail)
}

/** Locks the transaction with its payments and refunds, and reads the refund. */
async function lockAwaiting(
  { config }: Pick<Context, 'config'>,
  tx: Tx,
  { merchantCode, transactionId, refundId }: RefundRecord['refund'],
): Promise<{ row: RefundRow; locked: LockedRefunds }> {
  const key = { merchantCode, transactionId }
  await lockTransaction(tx, key)
  const locked = await lockRefunds(tx, key, null)
  const row = locked.drafts.find(({ now }) => now.refundId === refundId)?.now
  if (!row) {
    const detail = `Refund ${refundId} has changed in this moment; repeat the request`
    throw new DomainError('unavailable', detail)
  }
  const why = await explainOver(config, tx, row)
  if (why === undefined) return { row, locked }
  throw new DomainError('not_awaiting_approval', `Refund ${refundId} does not await approval${why}`)
}

/** Why a refund does not await approval any more, with what was decided; undefined if it does. */
async function explainOver(
  { REFUND_APPROVAL_WITHIN_MS: withinMs }: Context['config'],
  tx: Tx,
  row: RefundRow,
): Promise<string | undefined> {
  const { merchantCode, refundId, status, sinceRequestedMs } = row
  if (status !== 'awaiting_approval') {
    const [decided] = await tx<{ decided: string | null }[]>`
      select case when approved_at is null then 'declined' else 'approved' end
        || case when ${tx.unsafe(BY_PERSON)} then ' by ' else ' with API key ' end || decided_by
        || coalesce(': ' || decided_reason, '') as decided
      from refunds where merchant_code = ${merchantCode} and refund_id = ${refundId}`
    const state = STATES[status].shown
    return `: it is ${state}${decided?.decided ? `, ${decided.decided}` : ''}`
  }
  if (sinceRequestedMs >= withinMs) {
    return ' any more: it was not approved in time; request it again with a new key if it is still wanted'
  }
  return (await isNotified(tx, row))
    ? ' any more: the gateway has notified its request id; the notification decides it within moments'
    : undefined
}

type Decider = { access: Access; reason: string | undefined }

async function approve(
  { encryption }: Pick<Context, 'encryption'>,
  tx: Tx,
  row: RefundRow,
  { access, reason }: Decider,
): Promise<void> {
  const { merchantCode, refundId, receiver: encrypted } = row
  const receiver = encrypted
    ? decryptReceiver(encryption, encrypted, 'receiver', refundId)
    : undefined
  if (encrypted && !receiver) {
    const detail = `The receiver of refund ${refundId} cannot be read at the moment, so it cannot be approved`
    throw new DomainError('unavailable', detail)
  }
  const approved = encryption.fingerprint(formatApproved(row, receiver))
  await tx`
    update refunds set status = 'pending', due_at = now(), updated_at = now(), approved_at = now(),
      decided_by = ${access.name}, folded_decided_by = ${foldName(access.name)}, decided_principal = ${access.principal},
      decided_reason = ${reason ?? null}, approved_fingerprint = ${approved.value},
      approved_fingerprint_key_id = ${approved.keyId}
    where merchant_code = ${merchantCode} and refund_id = ${refundId} and status = 'awaiting_approval'`
  await recordStep(tx, row, 'pending', describe('approved', access, reason))
}

async function decline(
  { config }: Pick<Context, 'config'>,
  tx: Tx,
  row: RefundRow,
  { access, reason }: Decider,
  locked: LockedRefunds,
): Promise<void> {
  refuseOwnGrowth(locked, row, 'declined')
  const { merchantCode, refundId } = row
  await tx`
    update refunds set status = 'failed', updated_at = now(), declined_at = now(), failure_source = 'merchant',
      failure_reason = 'declined', failure_message = ${reason ?? `declined by ${access.name}`},
      decided_by = ${access.name}, folded_decided_by = ${foldName(access.name)}, decided_principal = ${access.principal},
      decided_reason = ${reason ?? null}
    where merchant_code = ${merchantCode} and refund_id = ${refundId} and status = 'awaiting_approval'`
  await recordStep(tx, row, 'failed', describe('declined', access, reason))
  await scheduleReceiverErasure(tx, config, startDraft({ ...row, status: 'failed' }))
}

function describe(done: string, access: Access, reason: string | undefined): string {
  return `${done} ${describeActor(access)}${reason === undefined ? '' : `: ${reason}`}`
}

async function recordStep(
  tx: Tx,
  { merchantCode, transactionId, paymentId, refundId }: RefundRow,
  after: 'pending' | 'failed',
  cause: string,
): Promise<void> {
  const key = { merchantCode, transactionId, paymentId, refundId }
  await recordChanges(tx, [{ ...key, field: 'status', before: 'awaiting_approval', after, cause }])
}

/** Makes the transaction due, and records the audit entry and the event. */
async function recordDecision(
  { sql, log, encryption }: Pick<Context, 'sql' | 'log' | 'encryption'>,
  tx: Tx,
  { merchantCode, transactionId, refundId }: RefundRow,
  { access, operation }: { access: Access; operation: string },
): Promise<void> {
  await tx`
    update transactions t set version = version + 1, updated_at = now(), ${makeDue(sql)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, { merchantCode, transactionId })
  await recordWrite(tx, log, access, { operation, merchantCode, objectId: refundId })
  const shown = await readRefunds(tx, merchantCode, [refundId])
  const events = shown.map((one) => buildRefundEvent(encryption, one.refund, 'refund.updated', one))
  await recordEvents(tx, events)
}

const BATCH = 100

type ExpiringContext = Pick<Context, 'config' | 'encryption' | 'sql'>
type Expiring = { merchantCode: string; transactionId: string; refundId: string }

/**
 * Fails the refunds that nobody approved or declined within `REFUND_APPROVAL_WITHIN_MS`. It needs no answer of the
 * gateway, because nothing was sent. One that a lost row may have sent is left to a person instead: its payment has grown
 * by its amount, or is not listed. One that the gateway has notified is left to its notification.
 * @returns the number of refunds that expired
 */
export async function expireApprovals(ctx: ExpiringContext): Promise<number> {
  const found = await ctx.sql<Expiring[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId", refund_id as "refundId"
    from refunds where status = 'awaiting_approval'
      and requested_at <= now() - ${ctx.config.REFUND_APPROVAL_WITHIN_MS}::float8 * interval '1 millisecond'
    limit ${BATCH}`
  let count = 0
  for (const one of found) if (await expire(ctx, one)) count += 1
  return count
}

async function expire(
  { config, encryption, sql }: ExpiringContext,
  { merchantCode, transactionId, refundId }: Expiring,
): Promise<boolean> {
  const key = { merchantCode, transactionId }
  return await runInTransaction(sql, async (tx) => {
    await lockTransaction(tx, key)
    const locked = await lockRefunds(tx, key, null)
    const draft = locked.drafts.find(({ now }) => now.refundId === refundId)
    // The notification has made the transaction due: its commit decides.
    if (draft?.now.status !== 'awaiting_approval' || (await isNotified(tx, draft.now))) return false
    end(config, draft, locked)
    await saveDraft(tx, draft)
    await scheduleReceiverErasure(tx, config, draft)
    await tx`
      update transactions t set version = version + 1, updated_at = now(), ${makeDue(sql)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
    notifyAfterCommit(tx, SYNC_DUE)
    notifyTransactionChanged(tx, key)
    const shown = await readRefunds(tx, merchantCode, [refundId])
    const events = shown.map((one) =>
      buildRefundEvent(encryption, one.refund, 'refund.updated', one),
    )
    await recordEvents(tx, events)
    return true
  })
}

function end(
  { REFUND_APPROVAL_WITHIN_MS: withinMs }: Pick<Context['config'], 'REFUND_APPROVAL_WITHIN_MS'>,
  draft: RefundDraft,
  locked: LockedRefunds,
): void {
  const failureMessage = `not approved within ${withinMs} ms`
  const mayHaveMoved = explainMayHaveMoved(locked, draft.now)
  if (mayHaveMoved !== undefined) {
    const reason = `${failureMessage}, but ${mayHaveMoved}`
    sendToReview(draft, 'may_have_moved', 'contradicted', { reason })
    return
  }
  const failure = { failureReason: 'approval_expired', failureMessage }
  move(draft, 'approval_expired', { reason: failureMessage }, failure)
}
