import type { Config } from '../config/config.ts'
import { formatBody, readPaymentsAnswer } from './answers.ts'
import { signFields, writeHeaders } from './client.ts'
import { writeParams } from './parse-body.ts'
import { describeCode } from './response-codes.ts'
import type { GatewayAnswer, PaymentList } from './types.ts'

export type Variant = { prefix: string; encoding: 'json' | 'form' }

export type Reply = {
  status: number
  answer: GatewayAnswer<PaymentList>
  text: string
  ms: number
  /** How far this machine's clock is ahead of the gateway's (ms); undefined if the answer has no date. */
  aheadMs: number | undefined
}

type Tried = { baseUrl: string; merchantCode: string; transactionId: string }

/**
 * Sends one QUERY_PT without the client and its limits, to try settings.
 * @param isSpoiled sends a wrong hash, to see how the gateway refuses it
 */
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
  const base = new URL(baseUrl)
  base.pathname = base.pathname.replace(/\/$/, '') + GATEWAY_PAYGATE_PATH
  const startedAt = Date.now()
  try {
    const response = await fetch(base, {
      method: 'POST',
      redirect: 'manual',
      headers: writeHeaders(encoding),
      body: writeParams(sent, encoding),
      signal: AbortSignal.timeout(GATEWAY_TIMEOUT_MS),
    })
    const body = Buffer.from(await response.arrayBuffer())
    const ms = Date.now() - startedAt
    const date = Date.parse(response.headers.get('date') ?? '')
    // The date has whole seconds, so it is half a second early on average.
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

/** A gateway that answers a wrong hash in the same way has refused ours, or checks neither. */
export function isAccepted({ answer }: Reply, spoiled: Reply | { failure: string }): boolean {
  if (answer.kind === 'unknown') return false
  if (answer.kind === 'answered' || 'failure' in spoiled) return true
  return describeAnswer(answer) !== describeAnswer(spoiled.answer)
}

/** Other ways to write the call, the most likely first: the answer may show the prefix that the gateway uses. */
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
