import { createHash } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { LosslessNumber } from 'lossless-json'
import type { z } from 'zod'
import {
  type SignatureVerdict,
  verifySecureHash,
  type WireParams,
} from '../../gateway/signature.ts'
import { addAmounts } from '../../money.ts'
import { answerRequest, takeFault } from '../faults.ts'
import { type PaygateEntry, recordEntry } from '../journal.ts'
import type { SandboxMerchant, SandboxPayment, SandboxState } from '../state.ts'
import type { PaygateAnswer } from '../types.ts'
import { readFields, readParams, writeAnswer } from '../wire-format.ts'
import { acceptRefund, maskReceiver } from './refunds.ts'
import {
  parseRequest,
  type QueryRequest,
  queryRequest,
  refundRequest,
  refuse,
  refuseWithCode,
  succeed,
} from './requests.ts'
import { sumUnsettled } from './transactions.ts'

/** Answers QUERY_PT with the payments of a transaction (specification 4.3.1, entries 2.4). */
export function answerQuery(
  state: SandboxState,
  merchant: SandboxMerchant,
  request: QueryRequest,
): PaygateAnswer {
  const transaction = merchant.transactions.get(request.TransactionID)
  if (transaction === undefined) return refuse('unknownTransaction')
  const listed = transaction.payments.filter((payment) => payment.listed)
  return succeed(
    listed.map((payment) => ({
      id: payment.id,
      status: payment.status,
      amount: new LosslessNumber(payment.amount),
      paymentMethod: payment.paymentMethod,
      refundedAmount: new LosslessNumber(showRefunded(state, payment)),
    })),
  )
}

/** Returns the `refundedAmount` of QUERY_PT: an override set by control, or the real amount. */
function showRefunded({ refundMode }: SandboxState, payment: SandboxPayment): string {
  if (payment.refundedAmountShown !== null) return payment.refundedAmountShown
  if (!refundMode.countsUnsettled) return payment.refundedAmount
  return addAmounts([payment.refundedAmount, sumUnsettled(payment)])
}

type PaygateRequest = {
  params: WireParams | undefined
  fields: Readonly<Record<string, unknown>>
  command: string
  merchant: SandboxMerchant | undefined
  signature: SignatureVerdict | 'unchecked'
}

/**
 * The shared path of QUERY_PT and REFUND (specification 4.3). Each request is recorded in the journal
 * and may meet a fault. Checks are in a fixed order: command, parameters, version, merchant,
 * signature, object.
 */
export function makePaygateRoute(state: SandboxState) {
  return async (c: Context<{ Bindings: HttpBindings }>): Promise<Response> => {
    const bytes = await c.req.arrayBuffer().catch(() => undefined)
    if (bytes === undefined) return c.body(null, 400)
    const body = Buffer.from(bytes)
    const { background, settings } = state
    const request = readRequest(state, c.req.header('content-type'), body.toString('utf8'))
    const fault = takeFault(state.faults, request.command, state.random)
    const entry = recordEntry<PaygateEntry>(state.journal, {
      ...describeRequest(request, settings.fieldPrefix),
      outcome: fault?.kind ?? 'received',
      rawBodySha256: createHash('sha256').update(body).digest('hex'),
    })
    const execute = async () => {
      const answer = await executeRequest(state, request)
      entry.workCode = answer.code
      return answer
    }
    const write = (answer: PaygateAnswer) =>
      writeAnswer(answer, { command: request.command, prefix: settings.fieldPrefix })
    // HTTP 200 and JSON for all codes (specification 4.3).
    const send = (answer: PaygateAnswer) => {
      entry.code = answer.code
      return c.body(write(answer), 200, { 'content-type': 'application/json; charset=utf-8' })
    }
    const exchange = { c, background, execute, refuse: refuseWithCode, send, write }
    return answerRequest(fault, entry, exchange)
  }
}

function readRequest(
  { settings, merchants }: SandboxState,
  contentType: string | undefined,
  body: string,
): PaygateRequest {
  const { fieldPrefix: prefix, refundHashExclude } = settings
  const params = readParams(contentType, body, prefix)
  const fields = params === undefined ? {} : readFields(params, prefix)
  const command = asText(fields.Command) ?? '(none)'
  const merchant = merchants.get(asText(fields.MerchantCode) ?? '')
  const rule = { prefix, exclude: command === 'REFUND' ? refundHashExclude : [] }
  const canVerify = params !== undefined && merchant !== undefined
  const signature = canVerify ? verifySecureHash(params, [merchant.secret], rule) : 'unchecked'
  return { params, fields, command, merchant, signature }
}

function describeRequest(
  { params, fields, command, signature }: PaygateRequest,
  prefix: string,
): Omit<PaygateEntry, 'outcome' | 'rawBodySha256'> {
  const receiver = `${prefix}_Receiver`
  const masked = fields.Receiver === undefined ? {} : { [receiver]: maskReceiver(fields.Receiver) }
  return {
    command,
    at: new Date().toISOString(),
    code: null,
    workCode: null,
    merchantCode: asText(fields.MerchantCode),
    transactionId: asText(fields.TransactionID),
    paymentId: asText(fields.PaymentID),
    requestId: asText(fields.RequestID),
    signature,
    params: { ...params, ...masked },
  }
}

async function executeRequest(
  state: SandboxState,
  request: PaygateRequest,
): Promise<PaygateAnswer> {
  if (request.params === undefined) return refuse('unreadable')
  switch (request.command) {
    case 'QUERY_PT':
      return executeCommand(state, request, queryRequest, answerQuery)
    case 'REFUND':
      return executeCommand(state, request, refundRequest, acceptRefund)
    default:
      return refuseCommand(request, `${state.settings.fieldPrefix}_Command`)
  }
}

function refuseCommand({ fields }: PaygateRequest, name: string): PaygateAnswer {
  const { Command: command } = fields
  if (command === undefined || command === null || command === '') {
    return refuse('missingParameter', name)
  }
  if (typeof command !== 'string') return refuse('wrongType', `${name} must be a string`)
  return refuse('unknownCommand', command)
}

async function executeCommand<T extends { Version: string }>(
  state: SandboxState,
  { fields, merchant, signature }: PaygateRequest,
  schema: z.ZodType<T>,
  run: (
    state: SandboxState,
    merchant: SandboxMerchant,
    request: T,
  ) => PaygateAnswer | Promise<PaygateAnswer>,
): Promise<PaygateAnswer> {
  const parsed = parseRequest(schema, fields)
  const wireName = (name: string) => `${state.settings.fieldPrefix}_${name}`
  if (parsed.kind === 'missing') return refuse('missingParameter', wireName(parsed.name))
  if (parsed.kind === 'wrongType') {
    return refuse('wrongType', `${wireName(parsed.name)} ${parsed.must}`)
  }
  const { request } = parsed
  if (request.Version !== '1') return refuse('unsupportedVersion', request.Version)
  if (merchant === undefined) return refuse('unknownMerchant')
  if (signature !== 'verified') return refuse('badSignature')
  return run(state, merchant, request)
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
