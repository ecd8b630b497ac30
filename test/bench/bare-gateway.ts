import { createServer } from 'node:http'

/** A gateway that does nothing but answer at once, so that only the service's own work is measured. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const params: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString())
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer(params)))
  })
})

function answer(params: Record<string, unknown>) {
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
