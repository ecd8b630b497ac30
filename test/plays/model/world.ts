import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { ServiceContext } from '../../../src/create-context.ts'
import { openRefund, settleRefund } from '../../../src/sandbox/ledger.ts'
import type { SandboxPayment, SandboxRefund } from '../../../src/sandbox/state.ts'
import type { QueryAnswer, ToldFailure } from '../../nightly/audit/ledgers.ts'
import { type MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import type { HeldFrom, Hold } from './holds.ts'
import type { Saved } from './lost-commits.ts'
import type { LastDecision } from './people.ts'
import type { Stage } from './stage.ts'
import type { Meanwhile, Pause, SendFate } from './wire.ts'

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

/** Two accounts side by side, whose transactions, payments and some refunds have the same ids. */
export type Worlds = readonly [World, World]

/** The service, the gateway, and the state of one account's transaction as the test knows it. */
export class World {
  readonly stage: Stage
  readonly options: WorldOptions
  readonly account: typeof MERCHANT
  readonly transactionId: string
  readonly payments: readonly SandboxPayment[]
  /** Of this account's work only. */
  ctx: ServiceContext
  /** The account with the same ids. */
  other: World | undefined
  asked: Asked[] = []
  /** How often each settled refund was notified, by request id. */
  notified = new Map<string, number>()
  /** Refunds made elsewhere, by request id, and those of them from before the payment was first seen. */
  portal = new Set<string>()
  early = new Set<string>()
  /** Refunds accepted by the gateway whose answer was a refusal: until when the money may still move. */
  deniedUntil = new Map<string, number>()
  clockMs = 0
  /** What the next REFUND meets, who sleeps, and what somebody else does during the next pass. */
  fate: SendFate = { kind: 'through' }
  pause: Pause | undefined
  onPause: (pause: Omit<Pause, 'round'>) => void = () => {}
  meanwhile: Meanwhile | undefined
  /** The next query's answer is held back by a sleeping process. */
  pausesQuery = false
  /** How often a refund may have been sent; since when (world time); those sent again too late. */
  sends = new Map<string, number>()
  firstSends = new Map<string, number>()
  repeatedLate = new Set<string>()
  /** How often each request id was sent by attempts whose record was lost. */
  lostSends = new Map<string, number>()
  /** Refunds of which the gateway notified what is not true. */
  lies = new Set<string>()
  /** The code of each refund that failed at the gateway, if not 1. */
  codes = new Map<string, number>()
  /** What was said of refunds, by request id, and what queries showed. A restore forgets what people said. */
  told = {
    failures: [] as ToldFailure[],
    answers: [] as QueryAnswer[],
    baselines: new Map<string, string>(),
    successes: new Set<string>(),
    saidReturned: new Map<string, { people: number; at: number }>(),
    neverHappened: new Set<string>(),
    firstSight: new Set<string>(),
  }
  /** When each refund was first seen to have failed (world time). */
  failedAt = new Map<string, number>()
  /** Refunds whose money came back; those that people decided last, and those that they decided against the ledger. */
  cameBack = new Set<string>()
  decided = new Map<string, LastDecision>()
  misjudged = new Set<string>()
  /** The gateway no longer knows some request ids. */
  forgets = false
  /** An earlier moment that the database may be set back to. */
  saved: Saved | undefined
  restored = false
  /** Refunds whose cancellation was acknowledged, and not lost. */
  cancelled = new Set<string>()
  /** What is held now, by target and id, and what was before. */
  holds = new Map<string, HeldFrom>()
  pastHolds: Hold[] = []
  /** Own refunds that have the id of one of the other account, and those whose success was inferred at some time. */
  renamed = new Set<string>()
  inferred = new Set<string>()
  /** Both sides of the wire when they were last audited. */
  audited: string | undefined
  /** A mark of every row of the account, and the tables that steps of the other account have changed. */
  rows = new Map<string, string>()
  changedByOther: string[] = []
  /**
   * Payments of which nobody can know what may move: a person decided against the ledger, or a refund whose row is lost
   * could not be requested again, was cancelled, or was not sent again in time.
   */
  overdrawn = new Set<string>()
  /** The highest refunded amount ever shown, by payment. */
  highest = new Map<string, number>()

  constructor(
    given: Pick<World, 'stage' | 'options' | 'account' | 'transactionId' | 'payments' | 'ctx'>,
  ) {
    this.stage = given.stage
    this.options = given.options
    this.account = given.account
    this.transactionId = given.transactionId
    this.payments = given.payments
    this.ctx = given.ctx
  }

  get sql() {
    return this.stage.rig.database.sql
  }
}

/** Calls the service as somebody; the query names the account, where an id exists in both. */
export async function call(
  { stage, account }: World,
  method: string,
  path: string,
  { key, body, headers = {} }: { key?: string; body?: object; headers?: Record<string, string> },
): Promise<{ status: number; answer: unknown }> {
  const response = await stage.rig.api(`/v1/${path}?merchantCode=${account.merchantCode}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...headers,
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, answer: await response.json() }
}

/** Counts something that took effect. */
export function note({ stage: { tally } }: World, deed: string): void {
  tally.set(deed, (tally.get(deed) ?? 0) + 1)
}

export function noteFailure(
  { told, clockMs: at }: World,
  requestId: string,
  code: string,
  by: ToldFailure['by'],
): void {
  told.failures.push({ requestId, code, by, at, answers: told.answers.length })
}

/** Refunds at the gateway whose money may still move. */
export function findOpen({ payments }: World): SandboxRefund[] {
  return payments.flatMap(({ refunds }) => refunds).filter(({ status }) => status === 'accepted')
}

export function findSettled({ payments }: World): SandboxRefund[] {
  return payments.flatMap(({ refunds }) => refunds).filter(({ status }) => status !== 'accepted')
}

export async function settle(
  { stage, codes }: World,
  refund: SandboxRefund,
  failureCode?: number,
): Promise<void> {
  await settleRefund(stage.rig.sandbox.state, refund, failureCode)
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
  const refund = openRefund(world.stage.rig.sandbox.state, payment, String(amount), requestId)
  world.portal.add(refund.requestId)
  await settle(world, refund, failureCode)
  return refund
}

/**
 * Delivers the notification of a refund as it stands; every copy after the first has other bytes.
 * @param form a code instead of the one that is true; the request id in upper case
 */
export async function deliverNotification(
  world: World,
  { requestId, transId, payment, amount, status }: SandboxRefund,
  { code, upper = false }: { code?: number; upper?: boolean } = {},
): Promise<void> {
  const { account, told } = world
  const times = world.notified.get(requestId) ?? 0
  const isTrue = code === undefined || code === 99
  if (status !== 'accepted' && isTrue) world.notified.set(requestId, times + 1)
  const failure = world.codes.get(requestId) ?? 1
  const says = code ?? (status === 'failed' ? failure : 0)
  if (says === 0) told.successes.add(requestId)
  else if (says !== 99) noteFailure(world, requestId, String(says), 'notification')
  const body = {
    svc_MerchantCode: account.merchantCode,
    svc_Command: 'REFUND',
    svc_PaymentID: payment.id,
    svc_RequestID: upper ? requestId.toUpperCase() : requestId,
    svc_TransactionID: transId,
    svc_Amount: Number(amount),
    svc_Version: '1',
    svc_ResponseCode: says,
    svc_ResponseMsg: `copy ${times}`,
  }
  const signed = signIpn(body, { secret: account.secret, exclude: [] })
  expect((await postIpn(world.stage.rig.service.url, signed)).status).toBe(200)
}

/** Money that moved, and that the gateway accepted to move. */
export function countMoved({ refunds }: SandboxPayment): number {
  return sum(refunds.filter(({ status }) => status === 'succeeded'))
}

export function countTaken({ refunds }: SandboxPayment): number {
  return sum(refunds.filter(({ status }) => status !== 'failed'))
}

export function showsNow({ options }: World, payment: SandboxPayment): number {
  if (payment.refundedAmountShown !== null) return Number(payment.refundedAmountShown)
  return options.countsUnsettled ? countTaken(payment) : countMoved(payment)
}

export function sum(refunds: readonly { amount: string | number }[]): number {
  const units = refunds.map(({ amount }) => Math.round(Number(amount) * 10_000))
  return units.reduce((total, one) => total + one, 0) / 10_000
}
