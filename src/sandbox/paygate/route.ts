import { createHash } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { z } from 'zod'
import {
  type SignatureVerdict,
  verifySecureHash,
  type WireParams,
} from '../../gateway/signature.ts'
import { takeFault } from '../faults/faults.ts'
import { followFault } from '../faults/misbehave.ts'
import { type CallEntry, recordEntry } from '../journal.ts'
import type { Book, SandboxState } from '../state.ts'
import { readFields, readParams, writeAnswer } from '../wire.ts'
import { type Answer, refuse, refuseWithCode } from './codes.ts'
import { answerQuery } from './queries.ts'
import { maskReceiver } from './receiver.ts'
import { acceptRefund } from './refunds.ts'
import { queryRequest, readRequest, refundRequest } from './requests.ts'

type Call = {
  params: WireParams | undefined
  fields: Readonly<Record<string, unknown>>
  command: string
  book: Book | undefined
  signature: SignatureVerdict | 'unchecked'
}

/**
 * The gateway operations' shared path (specification 4.3): every request is journalled, may meet a
 * fault, and is checked in a fixed order: command, parameters, version, merchant, signature, object.
 */
export function makeGatewayRoute(state: SandboxState) {
  return async (c: Context<{ Bindings: HttpBindings }>): Promise<Response> => {
    const bytes = await c.req.arrayBuffer().catch(() => undefined)
    if (bytes === undefined) return c.body(null, 400)
    const body = Buffer.from(bytes)
    const { fieldPrefix: prefix } = state.settings
    const call = readCall(state, c.req.header('content-type'), body.toString('utf8'))
    const fault = takeFault(state.faults, call.command, state.random)
    const entry = recordEntry<CallEntry>(state.journal, {
      ...describeCall(call, prefix),
      outcome: fault?.kind ?? 'received',
      rawBodySha256: createHash('sha256').update(body).digest('hex'),
    })
    const work = async () => {
      const answer = await execute(state, call)
      entry.workCode = answer.code
      return answer
    }
    const write = (answer: Answer) => writeAnswer(answer, { command: call.command, prefix })
    // HTTP 200 and JSON, whatever the code (specification 4.3).
    const send = (answer: Answer) => {
      entry.code = answer.code
      return c.body(write(answer), 200, { 'content-type': 'application/json; charset=utf-8' })
    }
    if (fault) return followFault(fault, { c, state, work, refuse: refuseWithCode, send, write })
    const answer = await work()
    entry.outcome = 'answered'
    return send(answer)
  }
}

function readCall(state: SandboxState, contentType: string | undefined, body: string): Call {
  const { fieldPrefix: prefix, refundHashExclude } = state.settings
  const params = readParams(contentType, body, prefix)
  const fields = params === undefined ? {} : readFields(params, prefix)
  const command = asText(fields.Command) ?? '(none)'
  const book = state.books.get(asText(fields.MerchantCode) ?? '')
  const rule = { prefix, exclude: command === 'REFUND' ? refundHashExclude : [] }
  const checked = params !== undefined && book !== undefined
  const signature = checked ? verifySecureHash(params, [book.secret], rule) : 'unchecked'
  return { params, fields, command, book, signature }
}

function describeCall(
  { params, fields, command, signature }: Call,
  prefix: string,
): Omit<CallEntry, 'outcome' | 'rawBodySha256'> {
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

async function execute(state: SandboxState, call: Call): Promise<Answer> {
  if (call.params === undefined) return refuse('unreadable')
  switch (call.command) {
    case 'QUERY_PT':
      return admit(state, call, queryRequest, answerQuery)
    case 'REFUND':
      return admit(state, call, refundRequest, acceptRefund)
    default:
      return refuseCommand(call, `${state.settings.fieldPrefix}_Command`)
  }
}

function refuseCommand({ fields: { Command: command } }: Call, name: string): Answer {
  if (command === undefined || command === null || command === '') {
    return refuse('missingParameter', name)
  }
  if (typeof command !== 'string') return refuse('wrongType', `${name} must be a string`)
  return refuse('unknownCommand', command)
}

async function admit<T extends { Version: string; MerchantCode: string }>(
  state: SandboxState,
  call: Call,
  schema: z.ZodType<T>,
  run: (state: SandboxState, book: Book, request: T) => Answer | Promise<Answer>,
): Promise<Answer> {
  const read = readRequest(schema, call.fields)
  const wire = (name: string) => `${state.settings.fieldPrefix}_${name}`
  if (read.kind === 'missing') return refuse('missingParameter', wire(read.name))
  if (read.kind === 'wrongType') return refuse('wrongType', `${wire(read.name)} ${read.must}`)
  const { request } = read
  if (request.Version !== '1') return refuse('unsupportedVersion', request.Version)
  if (call.book === undefined) return refuse('unknownMerchant')
  if (call.signature !== 'verified') return refuse('badSignature')
  return run(state, call.book, request)
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
