import { DomainError } from '../../../../src/errors.ts'
import { STATES } from '../../../../src/refunds/lifecycle.ts'
import { isInferredUnmatched, measureRefundable } from '../../../../src/refunds/measure.ts'
import type { PriorEvidence, RequestFacts } from '../../../../src/refunds/request-facts.ts'
import { type JudgedRequest, judgeRequest } from '../../../../src/refunds/request-rules.ts'
import { makeRefundRow } from '../../../support/refund-row.ts'
import { load, REACHED } from './service.ts'
import { nameOf, OTHER, type Setting, SUCCESS, type World } from './world.ts'

const PRIOR = { ipnEventId: 1, paymentId: 'P', notifiedAt: 'then', reading: 1 }
const ACCESS = {
  ...{ id: 'key', name: 'shop', principal: 'key:shop', chainId: 'key', requestId: 'r', scopes: [] },
  ...{ refundMax: null, refundDailyMax: null, refundMaxByCurrency: null, ratePerMinute: null },
  ...{ refundDailyMaxByCurrency: null, networks: null, merchants: ['M'], coversAll: true },
  required: new Set<never>(),
}

/** Requests a refund, or requests one again whose row was lost. */
export function request(world: World, setting: Setting, of: number): World {
  const amount = String(setting.amounts[of])
  const judged = judgeRow(world, setting, of)
  if (judged === undefined) return world
  const { status, known } = judged
  const external = known?.proves ? known.external : undefined
  const unsent = { attempts: 0, firstSentAt: null, lastSentAt: null, sinceFirstSentMs: null }
  const row = makeRefundRow({
    ...{ ...unsent, sinceSentMs: null, unanswered: false, status },
    ...{ refundId: nameOf(of), amount, needsApproval: status === 'awaiting_approval' },
    matched: external?.matched ?? false,
    inFirstSight: external?.outcome === 'part_of_first_sight',
    successNotifiedAt: known?.proves ? 'then' : null,
    review: status === 'needs_review' ? 'contradicted' : null,
  })
  REACHED.add(`requested: ${status}`)
  return {
    ...world,
    rows: world.rows.map((one, index) => (index === of ? row : one)),
    news: world.news.map((one, index) => (index === of && world.query ? 'requested' : one)),
    external: world.external.map((one) =>
      one.id === external?.externalId ? { ...one, outcome: 'own', matched: false } : one,
    ),
  }
}

/** @returns undefined when it is refused */
function judgeRow(world: World, setting: Setting, of: number): JudgedRequest | undefined {
  const params = { amount: String(setting.amounts[of]), receiver: undefined, reason: undefined }
  const asked = { access: ACCESS, refundId: nameOf(of), paymentId: 'P', params }
  const threshold = { currency: 'VND', amount: '0' }
  const config = {
    ...({
      REFUNDS_ENABLED: true,
      REFUND_RECEIVER_CHECK: 'lenient',
      CAPS_TIME_ZONE: 'UTC',
    } as const),
    REFUND_APPROVAL_ABOVE: setting.needsApproval ? [threshold] : [],
    accounts: [{ merchantCode: 'M' }],
  }
  try {
    return judgeRequest(readFacts(world, setting, of), asked, config)
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    REACHED.add(`refused: ${error.code}`)
    return undefined
  }
}

/** Reads what `lockAndReadFacts` reads. */
function readFacts(world: World, setting: Setting, of: number): RequestFacts {
  const { payments, drafts } = load(world, setting, false)
  const [payment] = payments
  if (!payment) throw new Error('there is no payment')
  const rows = drafts.map(({ now }) => now)
  const inferred = rows.find(isInferredUnmatched)
  return {
    payment: {
      ...{ status: payment.status, missing: payment.missing, paymentMethod: 'ATM', held: null },
      ...{
        unreadable: world.payment.view === 'unreadable',
        accountHeld: null,
        version: '',
        want: 1,
      },
      refundable: measureRefundable(payment, rows, payment.amount),
      open: rows.filter(({ status }) => !STATES[status].ended).length,
      ...{ verifiedCurrency: 'VND', requestedCurrency: 'VND', ownTotal: '0' },
    },
    order: { currency: 'VND', orderId: null, merchantTxnId: null },
    ...{ prior: listPrior(world, setting, of), inferred, today: undefined },
    ...{ transactionId: 'T', now: '', foldedOnBehalfOf: null },
  }
}

/** Lists what is known of the request id, as `readPriorEvidence` does. */
function listPrior(world: World, { amounts, plant }: Setting, of: number): PriorEvidence[] {
  if (plant?.forgetsPrior) return []
  const codes = [
    ...(world.heard[of] ?? ''),
    ...world.inbox.flatMap((one) => (one.of === of ? [one.code] : [])),
  ]
  const notified = codes.map((code) => ({
    ...{ ...PRIOR, externalId: null, uncontradicted: false, matched: false, outcome: null },
    code: code === OTHER ? SUCCESS : code,
    amount: code === OTHER ? '1' : String(amounts[of]),
  }))
  const external = world.external.filter(({ id }) => id === nameOf(of))
  return [
    ...notified,
    ...external.map(({ id, amount, outcome, matched, failureNotifiedAt }) => ({
      ...{ ...PRIOR, amount, code: null, externalId: id, matched, outcome },
      uncontradicted:
        failureNotifiedAt === null && outcome !== 'released' && outcome !== 'never_happened',
    })),
  ]
}
