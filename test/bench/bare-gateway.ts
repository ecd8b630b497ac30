import { createServer } from 'node:http'

/** A gateway that does nothing but answer after `DELAY_MS`, so that only the service's own work is measured. */
const delayMs = Number(process.env.DELAY_MS ?? 0)

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const params: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString())
    response.setHeader('content-type', 'application/json')
    const body = JSON.stringify(answer(params))
    if (delayMs === 0) response.end(body)
    else setTimeout(() => response.end(body), delayMs)
  })
})

function answer(params: Record<string, unknown>) {
  if (params.svc_Command === 'REFUND') {
    return { svc_ResponseCode: 0, svc_ResponseData: { transId: 'R1' }, svc_ResponseMsg: 'Success' }
  }
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
