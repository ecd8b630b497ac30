import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'

/** The baseline of reads: the same HTTP stack, answering a transaction it need not look for. */
const transaction = {
  transactionId: 'B0000000000X000',
  merchantCode: 'BENCH',
  orderId: 'O000000000000',
  merchantTxnId: 'M000000000000',
  currency: 'VND',
  state: 'paid',
  paidAmount: '20000000',
  refundedAmount: '0',
  duplicatePayment: false,
  payments: [
    {
      id: 'P-B0000000000X000',
      transactionId: 'B0000000000X000',
      status: 'SUCCESS',
      amount: '20000000',
      refundedAmount: '0',
      refundableAmount: '20000000',
      currency: 'VND',
      paymentMethod: 'CC',
      unrecognised: false,
      missing: false,
      firstSeenAt: '2026-01-01T00:00:00.000Z',
      updatedAt: '2026-01-01T00:00:00.000Z',
      asOf: '2026-01-01T00:00:00.000Z',
    },
  ],
  final: true,
  sync: { status: 'settled', asOf: '2026-01-01T00:00:00.000Z', nextAttemptAt: null, attempts: 0 },
  ipnCount: 1,
  firstSeenAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
}
const app = new Hono().get('/v1/transactions/:id', (c) => c.json(transaction))
const port = Number(process.env.PORT)
createServer(getRequestListener(app.fetch)).listen(port, '127.0.0.1', () => console.log('ready'))
