import { createServer } from 'node:http'

/**
 * A gateway that does nothing but answer after `DELAY_MS`, so that only the work of who asks is measured: every payment is
 * paid.
 * `GET /calls` returns the number of calls since `POST /calls`, by command.
 */
const delayMs = Number(process.env.DELAY_MS ?? 0)
let calls = { QUERY_PT: 0, REFUND: 0 }

const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  if (request.url === '/calls') {
    if (request.method === 'POST') calls = { QUERY_PT: 0, REFUND: 0 }
    response.end(JSON.stringify(calls))
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const params: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString())
    const body = JSON.stringify(answer(params))
    if (delayMs === 0) response.end(body)
    else setTimeout(() => response.end(body), delayMs)
  })
})

function answer(params: Record<string, unknown>) {
  if (params.svc_Command === 'REFUND') {
    calls.REFUND += 1
    return { svc_ResponseCode: 0, svc_ResponseData: { transId: 'R1' }, svc_ResponseMsg: 'Success' }
  }
  calls.QUERY_PT += 1
  const payment = {
    id: `P-${params.svc_TransactionID}`,
    status: 'SUCCESS',
    amount: 20_000_000,
    refundedAmount: 0,
    paymentMethod: 'CC',
  }
  return { svc_ResponseCode: 0, svc_ResponseData: [payment], svc_ResponseMsg: 'Success' }
}

server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
