import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { EVERY_MERCHANT } from '../../../src/access/keys.ts'
import type { ServiceContext } from '../../../src/create-context.ts'
import { CLOCK } from '../../../src/platform/postgres/clock.ts'
import { openRefund, settleRefund } from '../../../src/sandbox/ledger.ts'
import type { SandboxPayment, SandboxRefund, SandboxState } from '../../../src/sandbox/state.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { makeDue } from '../../../src/transactions/due.ts'
import type { QueryAnswer, ToldFailure } from '../../nightly/audit/ledgers.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { seedCurrency } from '../../support/ask.ts'
import { type RefundRig, startRefundRig } from '../../support/refunds.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import type { Worlds } from './accounts.ts'
import type { RootKeys } from './approvals.ts'
import type { HeldFrom, Hold } from './holds.ts'
import type { Saved } from './lost-commits.ts'
import type { LastDecision } from './people.ts'
import type { Deed, Tally } from './tally.ts'
import { type Meanwhile, type Moment, makeWire, type Pause, tapGateway, type Wire } from './wire.ts'

/** A second account of the same gateway. */
const OTHER = { merchantCode: 'OTHER1', secret: 'the-secret-of-another-account' }

/** Real schedules: the model lets time pass by moving times in the database. */
export const SCHEDULE = {
  leaseMs: 20_000,
  resendMs: 31_000,
  resendForMs: 3_601_000,
  missingMs: 61_000,
  confirmMs: 601_000,
  resolveMs: 4 * 86_400_000,
  sendWithinMs: 7 * 86_400_000 + 1_000,
}

export type WorldOptions = {
  /** What a payment's amount is, one or two payments. */
  amounts: readonly number[]
  /** The gateway refuses repeated request ids, and the service is configured accordingly. */
  dedupes: boolean
  /** The gateway's ledger shows refunds that have not moved yet. */
  countsUnsettled: boolean
  /** Above this total a refund of a payment needs an approval; null for never. */
  approvalAbove: number | null
  /** Nobody releases a hold in the end. */
  staysHeld: boolean
  /** A refund that both accounts request under one key has one id in both, as ids from before they were derived may. */
  equalIds: boolean
  /** Refunds made at the portal before the service saw the payment first, and when they are notified. */
  before: readonly { amount: number; notified: 'before' | 'after' | 'never' }[]
}

/** A refund that the service accepted, and when (world time); approved later, from then on. */
export type Asked = { id: string; paymentId: string; key: string; body: object; atMs: number }

/** The service, the gateway, and the state of one account's transaction as the test knows it. */
export type World = WorldOptions & {
  rig: RefundRig
  account: typeof MERCHANT
  /** The account with the same ids. */
  other: World | undefined
  /** Of this account's work only. */
  ctx: ServiceContext
  wire: Wire
  /** The key of another principal than the one that asks, which approves. */
  approver: string
  /** The keys of two others, which decide about outcomes. */
  deciders: readonly [string, string]
  roots: RootKeys
  tally: Tally
  transactionId: string
  payments: SandboxPayment[]
  asked: Asked[]
  /** How often each settled refund was notified, by request id. */
  notified: Map<string, number>
  /** Refunds made elsewhere, by request id, and those of them from before the payment was first seen. */
  portal: Set<string>
  early: Set<string>
  /** Refunds accepted by the gateway whose answer was a refusal: until when the money may still move. */
  deniedUntil: Map<string, number>
  clockMs: number
  pause: Pause | undefined
  /** When each request id was first sent (world time), and those sent again too late. */
  firstSends: Map<string, number>
  repeatedLate: Set<string>
  /** Refunds of which the gateway notified what is not true. */
  lies: Set<string>
  /** The code of each refund that failed at the gateway, if not 1. */
  codes: Map<string, number>
  /** What the gateway and people have said of each refund, as the auditor is shown it. */
  told: Told
  /** When each refund was first seen to have failed (world time). */
  failedAt: Map<string, number>
  /** Refunds whose money came back. */
  cameBack: Set<string>
  /** The last decision of a person about each refund. */
  decided: Map<string, LastDecision>
  /** Refunds that people decided against the ledger. */
  misjudged: Set<string>
  /** The gateway no longer knows some request ids. */
  forgets: boolean
  /** An earlier moment that the database may be set back to. */
  saved: Saved | undefined
  restored: boolean
  /** How often each request id was sent by attempts whose record was lost. */
  lostSends: Map<string, number>
  /** Refunds whose cancellation was acknowledged, and not lost. */
  cancelled: Set<string>
  /** What is held now, by target and id, and what was before. */
  holds: Map<string, HeldFrom>
  pastHolds: Hold[]
  /** Own refunds that have the id of one of the other account. */
  renamed: Set<string>
  /** Refunds whose success was inferred at some time. */
  inferred: Set<string>
  /** Both sides of the wire when they were last audited. */
  audited: string | undefined
  /** A mark of every row of the account, and the tables that steps of the other account have changed. */
  rows: Map<string, string>
  changedByOther: string[]
  /**
   * Payments of which nobody can know what may move: a person decided against the ledger, or a refund whose row is lost
   * could not be requested again or was cancelled.
   */
  overdrawn: Set<string>
  /** The highest refunded amount ever shown, by payment. */
  highest: Map<string, number>
}

/** What was said of refunds, by request id, and what queries showed. A restore forgets what people said. */
export type Told = {
  failures: ToldFailure[]
  answers: QueryAnswer[]
  baselines: Map<string, string>
  successes: Set<string>
  saidReturned: Map<string, { people: number; at: number }>
  neverHappened: Set<string>
  firstSight: Set<string>
}

export type Stage = {
  rig: RefundRig
  state: SandboxState
  tally: Tally
  open(options: WorldOptions): Promise<Worlds>
  stop(): Promise<void>
}

/** One service without background work and one gateway, for many worlds one after the other. */
export async function startStage(): Promise<Stage> {
  const rig = await startRefundRig({
    config: { accounts: [MERCHANT, OTHER] },
    sandbox: { accounts: [MERCHANT, OTHER] },
    settings: {
      ROLE: 'web',
      GATEWAY_TIMEOUT_MS: '5000',
      REFUND_BACKOFF_MS: '2000',
      REFUND_BACKOFF_MAX_MS: '900000',
      REFUND_RESEND_AFTER_MS: '30000',
      SYNC_MIN_GAP_MS: '0',
      SYNC_MAX_GAP_MS: '0',
      SYNC_BACKOFF_MS: '2000',
      SYNC_REPOLL_MS: '5000',
    },
  })
  const { state } = rig.sandbox
  const add = async (scopes: string) =>
    (await addPrincipal(rig.database, { scopes, merchantCode: EVERY_MERCHANT })).key
  const approver = await add('{refunds:approve}')
  const scopes = '{ops,payments:read,refunds:read}'
  const deciders = [await add(scopes), await add(scopes)] as const
  const roots = { n: 7, current: Buffer.alloc(32, 7).toString('base64'), next: undefined }
  const tally: Tally = new Map()
  return {
    rig,
    state,
    tally,
    async open(options) {
      state.faults.length = 0
      state.refundMode = {
        ...state.refundMode,
        ipn: 'never',
        dedupes: options.dedupes,
        countsUnsettled: options.countsUnsettled,
        guardsBalance: false,
        settleMs: null,
      }
      const { approvalAbove: above } = options
      rig.service.ctx.config.REFUND_APPROVAL_ABOVE =
        above === null ? [] : [{ currency: 'VND', amount: String(above) }]
      const given = {
        ...options,
        rig,
        approver,
        deciders,
        roots,
        tally,
        transactionId: randomUUID(),
      }
      const first = await openWorld(given, state, MERCHANT, undefined)
      const ids = first.payments.map(({ id }) => id)
      const second = await openWorld(given, state, OTHER, ids)
      first.other = second
      second.other = first
      return [first, second]
    },
    stop: () => rig.stop(),
  }
}

type Given = WorldOptions &
  Pick<World, 'rig' | 'approver' | 'deciders' | 'roots' | 'tally' | 'transactionId'>

/** @param paymentIds those to use; undefined for new ones */
async function openWorld(
  given: Given,
  state: SandboxState,
  account: typeof MERCHANT,
  paymentIds: readonly string[] | undefined,
): Promise<World> {
  const { transactionId, rig } = given
  const { merchantCode } = account
  const list = given.amounts.map((amount, n) => {
    const id = paymentIds?.[n]
    return { amount: String(amount), ...(id === undefined ? {} : { id }) }
  })
  await makeTransaction(rig, transactionId, list, merchantCode)
  const transaction = state.merchants.get(merchantCode)?.transactions.get(transactionId)
  const world = makeWorld(given, account, transaction?.payments ?? [])
  connect(world)
  const early = await makeEarlyRefunds(world)
  await rig.database.sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    values (${merchantCode}, ${transactionId}, now())`
  await seedCurrency(rig.database, transactionId, 'VND', { merchantCode })
  await syncDue(world.ctx)
  for (const refund of early) await deliverNotification(world, refund)
  return world
}

function makeWorld(given: Given, account: typeof MERCHANT, payments: SandboxPayment[]): World {
  const { ctx } = given.rig.service
  const wire = makeWire()
  const { state } = given.rig.sandbox
  const accounts: typeof ctx.config.accounts = [account]
  const config = { ...ctx.config, GATEWAY_REFUND_DEDUPES: given.dedupes, accounts }
  return {
    ...given,
    account,
    other: undefined,
    wire,
    ctx: { ...ctx, config, gateway: tapGateway(ctx.gateway, wire, state) },
    payments,
    asked: [],
    notified: new Map(),
    portal: new Set(),
    early: new Set(),
    deniedUntil: new Map(),
    clockMs: 0,
    pause: undefined,
    highest: new Map(),
    firstSends: new Map(),
    repeatedLate: new Set(),
    lies: new Set(),
    codes: new Map(),
    told: {
      failures: [],
      answers: [],
      baselines: new Map(),
      successes: new Set(),
      saidReturned: new Map(),
      neverHappened: new Set(),
      firstSight: new Set(),
    },
    failedAt: new Map(),
    cameBack: new Set(),
    decided: new Map(),
    misjudged: new Set(),
    forgets: false,
    saved: undefined,
    restored: false,
    overdrawn: new Set(),
    lostSends: new Map(),
    cancelled: new Set(),
    holds: new Map(),
    pastHolds: [],
    renamed: new Set(),
    inferred: new Set(),
    audited: undefined,
    rows: new Map(),
    changedByOther: [],
  }
}

/** Lets the wire note what leaves, and what the gateway does against its answer. */
function connect(world: World): void {
  const { wire, ctx } = world
  const final: readonly string[] = ctx.config.GATEWAY_REFUND_FINAL_CODES
  wire.onSend = (refundId) => noteSend(world, refundId)
  wire.onRefused = (requestId, code) => noteFailure(world, requestId, code, 'answer')
  wire.onQuery = () => {
    const at = world.clockMs
    return (refunded) => world.told.answers.push({ at, refunded })
  }
  wire.onFate = (deed) => note(world, deed)
  wire.onDenied = (refundId, code) => {
    if (!final.includes(code)) return
    world.deniedUntil.set(refundId, world.clockMs + SCHEDULE.confirmMs - 10_000)
  }
  wire.settleEarly = async (refundId) => {
    const refund = findOpen(world).find(({ requestId }) => requestId === refundId)
    if (!refund) return
    await settle(world, refund, undefined)
    await deliverNotification(world, refund)
  }
}

function noteFailure(
  { told, clockMs: at }: World,
  requestId: string,
  code: string,
  by: ToldFailure['by'],
): void {
  told.failures.push({ requestId, code, by, at, answers: told.answers.length })
}

/** The query parameter that names the account, where an id exists in both. */
export function inAccountOf({ account }: World): string {
  return `merchantCode=${account.merchantCode}`
}

/** Counts something that took effect. */
export function note({ tally }: Pick<World, 'tally'>, deed: Deed): void {
  tally.set(deed, (tally.get(deed) ?? 0) + 1)
}

/** @returns those to be notified once the payment was seen */
async function makeEarlyRefunds(world: World): Promise<SandboxRefund[]> {
  const [payment] = world.payments
  const later: SandboxRefund[] = []
  for (const { amount, notified } of payment ? world.before : []) {
    if (!payment || countTaken(payment) + amount > Number(payment.amount)) continue
    const refund = await refundElsewhere(world, payment, amount)
    world.early.add(refund.requestId)
    if (notified === 'before') {
      await deliverNotification(world, refund)
      world.told.firstSight.add(refund.requestId)
    }
    if (notified === 'after') later.push(refund)
  }
  return later
}

/** The service may rely on the gateway's memory for `REFUND_RESEND_FOR_MS`, except for rows it lost. */
function noteSend(world: World, refundId: string): void {
  const first = world.firstSends.get(refundId)
  if (first === undefined) {
    world.firstSends.set(refundId, world.clockMs)
    const of = world.asked.find(({ id }) => id === refundId)?.paymentId ?? ''
    world.told.baselines.set(refundId, world.told.answers.at(-1)?.refunded.get(of) ?? '0')
  } else if (!world.restored && world.clockMs - first >= SCHEDULE.resendForMs) {
    world.repeatedLate.add(refundId)
  }
}

/** Leaves nothing due or held behind for the next world. */
export async function closeWorld(world: World): Promise<void> {
  await wake(world)
  const { merchantCode } = world.account
  await world.rig.database.sql`
    update transactions set due_at = null, lease_id = null
    where merchant_code = ${merchantCode} and transaction_id = ${world.transactionId}`
  await world.rig.database.sql`
    update merchant_accounts set hold = null where merchant_code = ${merchantCode} and hold is not null`
}

/** Runs rounds until nothing is due. A round that falls asleep continues when it is woken. */
export async function runPass(world: World, { ask }: { ask: boolean }): Promise<void> {
  if (ask) {
    await world.rig.database.sql`
      update transactions as t set ${makeDue(world.ctx.sql)} from ${world.ctx.sql.unsafe(CLOCK)}
      where merchant_code = ${world.account.merchantCode} and transaction_id = ${world.transactionId}`
  }
  for (let rounds = 0; rounds < 20; rounds += 1) {
    const asleep = new Promise<Omit<Pause, 'round'>>((resolve) => {
      world.wire.onPause = resolve
    })
    const round = syncDue(world.ctx)
    const end = await Promise.race([round, asleep])
    if (end === 0) return
    if (typeof end !== 'number') world.pause = { ...end, round }
  }
  expect.unreachable('the pass finds no end')
}

/**
 * Runs a pass during which somebody else does something.
 * @returns whether the moment came
 */
export async function playMeanwhile(
  world: World,
  at: Moment,
  run: Meanwhile['run'],
): Promise<boolean> {
  if (world.pause) await wake(world)
  const meanwhile: Meanwhile = { at, run, done: undefined }
  world.wire.meanwhile = meanwhile
  await runPass(world, { ask: true })
  world.wire.meanwhile = undefined
  await meanwhile.done
  return meanwhile.done !== undefined
}

/** The sleeping process continues where it stopped. */
export async function wake(world: World): Promise<void> {
  const { pause } = world
  if (pause) note(world, pause.refundId === undefined ? 'woke' : 'woke and sent')
  world.pause = undefined
  pause?.wake()
  await pause?.round
}

/** Lets time pass: every time of the transaction moves back. */
export async function shiftTime(world: World, ms: number): Promise<void> {
  world.clockMs += ms
  await shiftRows(world, ms)
}

/** Moves every time of the transaction's rows back. Attempts keep theirs, by which their answers find them. */
export async function shiftRows(world: World, ms: number): Promise<void> {
  const { sql } = world.rig.database
  const by = sql`${ms}::float8 * interval '1 millisecond'`
  const ids = world.payments.map(({ id }) => id)
  const { merchantCode } = world.account
  const ofTransaction = sql`merchant_code = ${merchantCode} and transaction_id = ${world.transactionId}`
  const ofPayments = sql`merchant_code = ${merchantCode} and payment_id = any(${ids}::text[])`
  await sql`
    with moved_refunds as (
      update refunds set requested_at = requested_at - ${by}, due_at = due_at - ${by},
        first_sent_at = first_sent_at - ${by}, last_sent_at = last_sent_at - ${by},
        refused_at = refused_at - ${by}, failure_notified_at = failure_notified_at - ${by},
        success_notified_at = success_notified_at - ${by}, approved_at = approved_at - ${by},
        no_growth_since = no_growth_since - ${by}, return_seen_at = return_seen_at - ${by},
        resolved_at = resolved_at - ${by}
      where ${ofTransaction}
    ), moved_payments as (
      update payments set as_of = as_of - ${by}, first_seen_at = first_seen_at - ${by},
        first_as_of = first_as_of - ${by}, unlisted_since = unlisted_since - ${by},
        amount_changed_at = amount_changed_at - ${by}, refunded_fell_at = refunded_fell_at - ${by}
      where ${ofTransaction}
    ), moved_external as (
      update external_refunds set first_seen_at = first_seen_at - ${by},
        notified_at = notified_at - ${by}, failure_notified_at = failure_notified_at - ${by}
      where ${ofPayments}
    ), moved_events as (
      update ipn_events set first_received_at = first_received_at - ${by} where ${ofPayments}
    ), moved_calls as (
      update gateway_calls set sent_at = sent_at - ${by} where ${ofTransaction}
    )
    update transactions set due_at = due_at - ${by}, queried_at = queried_at - ${by},
      as_of = as_of - ${by}, asked_for_at = asked_for_at - ${by}
    where ${ofTransaction}`
}

/** Refunds at the gateway whose money may still move. */
export function findOpen({ payments }: World): SandboxRefund[] {
  return payments.flatMap(({ refunds }) => refunds).filter(({ status }) => status === 'accepted')
}

export function findSettled({ payments }: World): SandboxRefund[] {
  return payments.flatMap(({ refunds }) => refunds).filter(({ status }) => status !== 'accepted')
}

export async function settle(
  { rig, codes }: World,
  refund: SandboxRefund,
  failureCode: number | undefined,
): Promise<void> {
  await settleRefund(rig.sandbox.state, refund, failureCode)
  if (failureCode !== undefined) codes.set(refund.requestId, failureCode)
}

/** A refund made elsewhere: its money moves at once, or never. */
export async function refundElsewhere(
  world: World,
  payment: SandboxPayment,
  amount: number,
  {
    requestId = randomUUID() as string,
    failureCode,
  }: { requestId?: string; failureCode?: number } = {},
): Promise<SandboxRefund> {
  const refund = openRefund(world.rig.sandbox.state, payment, String(amount), requestId)
  world.portal.add(refund.requestId)
  await settle(world, refund, failureCode)
  return refund
}

/** What a notification says, and how. */
type NotificationForm = {
  /** Instead of the code that is true. */
  code?: number | undefined
  /** The request id in upper case. */
  upper?: boolean | undefined
}

/** Delivers the notification of a refund as it stands; every copy after the first has other bytes. */
export async function deliverNotification(
  world: World,
  refund: SandboxRefund,
  { code, upper = false }: NotificationForm = {},
): Promise<void> {
  const { requestId, transId, payment, amount, status } = refund
  const times = world.notified.get(requestId) ?? 0
  const isTrue = code === undefined || code === 99
  if (status !== 'accepted' && isTrue) world.notified.set(requestId, times + 1)
  const failure = world.codes.get(requestId) ?? 1
  const told = code ?? (status === 'failed' ? failure : 0)
  if (told === 0) world.told.successes.add(requestId)
  else if (told !== 99) noteFailure(world, requestId, String(told), 'notification')
  const { status: answer } = await postIpn(
    world.rig.service.url,
    signIpn(
      {
        svc_MerchantCode: world.account.merchantCode,
        svc_Command: 'REFUND',
        svc_PaymentID: payment.id,
        svc_RequestID: upper ? requestId.toUpperCase() : requestId,
        svc_TransactionID: transId,
        svc_Amount: Number(amount),
        svc_Version: '1',
        svc_ResponseCode: told,
        svc_ResponseMsg: `copy ${times}`,
      },
      { secret: world.account.secret, exclude: [] },
    ),
  )
  expect(answer).toBe(200)
}

/** Money that moved, and that the gateway accepted to move. */
export function countMoved({ refunds }: SandboxPayment): number {
  return sum(refunds.filter(({ status }) => status === 'succeeded'))
}

export function countTaken({ refunds }: SandboxPayment): number {
  return sum(refunds.filter(({ status }) => status !== 'failed'))
}

export function showsNow({ countsUnsettled }: World, payment: SandboxPayment): number {
  if (payment.refundedAmountShown !== null) return Number(payment.refundedAmountShown)
  return countsUnsettled ? countTaken(payment) : countMoved(payment)
}

export function sum(refunds: readonly { amount: string | number }[]): number {
  const units = refunds.map(({ amount }) => Math.round(Number(amount) * 10_000))
  return units.reduce((total, one) => total + one, 0) / 10_000
}
