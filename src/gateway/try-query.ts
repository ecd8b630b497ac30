import type { Config } from '../config/config.ts'
import { formatBody, readPaymentsAnswer } from './answers.ts'
import { signFields } from './client.ts'
import { writeParams } from './parse-body.ts'
import { describeCode } from './response-codes.ts'
import type { GatewayAnswer, PaymentList } from './types.ts'

/** Ways to write a call that settings decide about. */
export type Variant = { prefix: string; encoding: 'json' | 'form' }

export type Reply = {
  status: number
  answer: GatewayAnswer<PaymentList>
  /** The masked text of the answer. */
  text: string
  ms: number
  /** How far this machine's clock is ahead of the gateway's (ms); undefined if the gateway does not say. */
  aheadMs: number | undefined
}

type Tried = { baseUrl: string; merchantCode: string; transactionId: string }

/** Sends one QUERY_PT, outside of the client and its limits: for trying settings. @param isSpoiled with a hash that is wrong, to see how the gateway refuses one */
export async function tryQuery(
  config: Config,
  { baseUrl, merchantCode, transactionId }: Tried,
  { prefix, encoding }: Variant,
  isSpoiled: boolean,
): Promise<Reply | { failure: string }> {
  const { GATEWAY_TIMEOUT_MS, GATEWAY_PAYGATE_PATH } = config
  const fields = { TransactionID: transactionId }
  const call = { command: 'QUERY_PT', merchantCode, fields, exclude: [] } as const
  const params = signFields({ ...config, GATEWAY_FIELD_PREFIX: prefix }, call)
  const hash = `${prefix}_SecureHash`
  const sent = isSpoiled ? { ...params, [hash]: '0'.repeat(64) } : params
  const type = encoding === 'json' ? 'json' : 'x-www-form-urlencoded'
  const base = new URL(baseUrl)
  base.pathname = base.pathname.replace(/\/$/, '') + GATEWAY_PAYGATE_PATH
  const startedAt = Date.now()
  try {
    const response = await fetch(base, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': `application/${type}`, accept: 'application/json' },
      body: writeParams(sent, encoding),
      signal: AbortSignal.timeout(GATEWAY_TIMEOUT_MS),
    })
    const body = Buffer.from(await response.arrayBuffer())
    const ms = Date.now() - startedAt
    const date = Date.parse(response.headers.get('date') ?? '')
    // A date has whole seconds: half of one is added.
    const aheadMs = Number.isNaN(date) ? undefined : startedAt + ms / 2 - date - 500
    const { answer } = readPaymentsAnswer(body, prefix)
    return { status: response.status, answer, text: formatBody(body) ?? '', ms, aheadMs }
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    return { failure: String(code ?? (cause instanceof Error ? cause.name : cause)) }
  }
}

export function describeAnswer(answer: GatewayAnswer<PaymentList>): string {
  return answer.kind === 'rejected' ? describeCode(answer.code, answer.message) : answer.kind
}

/** A gateway that answers the wrong hash in the same way has refused ours, or reads neither. */
export function isAccepted({ answer }: Reply, spoiled: Reply | { failure: string }): boolean {
  if (answer.kind === 'unknown') return false
  if (answer.kind === 'answered' || 'failure' in spoiled) return true
  return describeAnswer(answer) !== describeAnswer(spoiled.answer)
}

/** The other ways to write the call, the most likely first: an answer shows the prefix that the gateway uses. */
export function listVariants(used: Variant, { text }: Reply): Variant[] {
  const [, seen] = /"(\w{1,20})_ResponseCode"/.exec(text) ?? []
  const prefixes = new Set([seen ?? used.prefix, used.prefix, 'svc'])
  const all = [...prefixes].flatMap((prefix) =>
    ([used.encoding, used.encoding === 'json' ? 'form' : 'json'] as const).map((encoding) => ({
      prefix,
      encoding,
    })),
  )
  return all.filter((one) => one.prefix !== used.prefix || one.encoding !== used.encoding)
}
