import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { type SignatureVerdict, verifySecureHash, type WireParams } from '../gateway/signature.ts'
import { exchange, type GatewayContext } from './exchange.ts'
import { acceptRefund, answerQuery } from './ledger.ts'
import type { SandboxMerchant, SandboxState } from './state.ts'
import {
  answerWithCode,
  type Fields,
  maskReceiver,
  type PaygateAnswer,
  parseRequest,
  queryRequest,
  readFields,
  readParams,
  refundRequest,
  refuse,
  writeAnswer,
} from './wire.ts'

type PaygateRequest = {
  params: WireParams | undefined
  fields: Fields
  command: string
  merchant: SandboxMerchant | undefined
  signature: SignatureVerdict | 'unchecked'
}

/** Answers the common path of QUERY_PT and REFUND (specification 4.3) with HTTP 200 and JSON for all codes. */
export async function servePaygate(state: SandboxState, c: GatewayContext): Promise<Response> {
  const bytes = await c.req.arrayBuffer().catch(() => undefined)
  if (bytes === undefined) return c.body(null, 400)
  const body = Buffer.from(bytes)
  const prefix = state.settings.fieldPrefix
  const request = readRequest(state, c.req.header('content-type'), body.toString('utf8'))
  const { params, fields, command, signature } = request
  const receiver = `${prefix}_Receiver`
  const masked = fields.Receiver === undefined ? {} : { [receiver]: maskReceiver(fields.Receiver) }
  const write = (answer: PaygateAnswer) => ({
    status: 200,
    code: answer.code,
    body: writeAnswer(answer, { command, prefix }),
  })
  return exchange(state, c, {
    entry: {
      command,
      code: null,
      workCode: null,
      merchantCode: asText(fields.MerchantCode),
      transactionId: asText(fields.TransactionID),
      paymentId: asText(fields.PaymentID),
      requestId: asText(fields.RequestID),
      signature,
      rawBodySha256: createHash('sha256').update(body).digest('hex'),
      params: { ...params, ...masked },
    },
    work: async () => write(await execute(state, request)),
    refuse: (code) => write(answerWithCode(code)),
  })
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

/** Checks the command, parameters, version, merchant, signature and object, in this order. */
function execute(
  state: SandboxState,
  request: PaygateRequest,
): PaygateAnswer | Promise<PaygateAnswer> {
  if (request.params === undefined) return refuse('unreadable')
  switch (request.command) {
    case 'QUERY_PT':
      return executeCommand(state, request, queryRequest, answerQuery)
    case 'REFUND':
      return executeCommand(state, request, refundRequest, acceptRefund)
    default:
      return refuseCommand(request.fields.Command, `${state.settings.fieldPrefix}_Command`)
  }
}

function refuseCommand(command: unknown, name: string): PaygateAnswer {
  if (command === undefined || command === null || command === '') {
    return refuse('missingParameter', name)
  }
  if (typeof command !== 'string') return refuse('wrongType', `${name} must be a string`)
  return refuse('unknownCommand', command)
}

function executeCommand<T extends { Version: string }>(
  state: SandboxState,
  { fields, merchant, signature }: PaygateRequest,
  schema: z.ZodType<T>,
  run: (
    state: SandboxState,
    merchant: SandboxMerchant,
    request: T,
  ) => PaygateAnswer | Promise<PaygateAnswer>,
): PaygateAnswer | Promise<PaygateAnswer> {
  const parsed = parseRequest(schema, fields, state.settings.fieldPrefix)
  if ('refusal' in parsed) return parsed.refusal
  const { request } = parsed
  if (request.Version !== '1') return refuse('unsupportedVersion', request.Version)
  if (merchant === undefined) return refuse('unknownMerchant')
  if (signature !== 'verified') return refuse('badSignature')
  return run(state, merchant, request)
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
