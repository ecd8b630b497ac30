import { createServer } from 'node:net'
import fc from 'fast-check'
import { makeItem, writeDetail, writeList } from '../../support/cards.ts'
import { listen } from '../../support/gateway.ts'
import { mutateOneOf } from './mutate.ts'

const PAYMENT = {
  id: 'P-1',
  status: 'SUCCESS',
  amount: 10.5,
  refundedAmount: 0,
  paymentMethod: 'CC',
}
const write = (code: number, data: unknown) =>
  JSON.stringify({ svc_ResponseCode: code, svc_ResponseMsg: 'ok', svc_ResponseData: data })

/** Right answers to each call. */
export const RIGHT = {
  query: [write(0, [PAYMENT]), write(0, [PAYMENT, { ...PAYMENT, id: 'P-2' }]), write(9, [])],
  refund: [write(0, { transId: 'R-1' }), write(33, {}), write(99, null)],
  detail: [writeDetail()],
  list: [writeList([makeItem(), makeItem({ virtualCardRequestId: 'VC-2' })])],
  token: [
    '{"access_token":"T1","token_type":"Bearer","expires_in":3600}',
    '{"data":{"access_token":"T1","expires_in":"60"}}',
  ],
}

/** What a gateway writes: its head untouched, so that the body arrives, or any bytes at all. */
export type Answer = { bytes: Buffer; body: Buffer | undefined }

const head = (length: number) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`

export const whole = (body: Buffer): Answer => ({
  bytes: Buffer.concat([Buffer.from(head(body.length)), body]),
  body,
})

/** Bytes of right answers gone wrong. */
export function makeAnswer(samples: readonly string[]): fc.Arbitrary<Answer> {
  const written = samples.map((body) => head(Buffer.byteLength(body)) + body)
  return fc.oneof(
    { weight: 5, arbitrary: mutateOneOf(samples).map(whole) },
    mutateOneOf(written, 1).map((bytes) => ({ bytes, body: undefined })),
  )
}

/** A gateway that writes the bytes it is given to whoever asks, and hangs up. */
export async function startScript() {
  const script: { answer(request: string): Buffer } = { answer: () => Buffer.alloc(0) }
  const server = createServer((socket) => {
    socket.once('data', (chunk) => socket.end(script.answer(chunk.toString())))
    socket.resume()
  })
  return { url: `http://127.0.0.1:${await listen(server)}`, script }
}

/** A body as any reader of JSON would take it; undefined when it is none. */
export function readPlainly(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
