import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { listen } from '../../support/gateway.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNTS } from './accounts.ts'
import { startOrderSystem } from './order-system.ts'

const [{ merchantCode }] = ACCOUNTS
const WISH = {
  merchantCode,
  key: 'K1',
  paymentId: 'P1',
  amount: '30',
  receiver: undefined,
  repeated: false,
  isTooMuch: false,
}

type Reply = { status: number; code: string }

/** Requests a refund of a service that replies so, the last reply again and again, until the order system gives up. */
async function requestUntilGivenUp(replies: readonly Reply[]) {
  let asked = 0
  const server = createServer((_, response) => {
    const reply = replies[Math.min(asked, replies.length - 1)]
    asked += 1
    response.statusCode = reply?.status ?? 500
    response.end(JSON.stringify({ code: reply?.code }))
  })
  const port = await listen(server)
  const orders = startOrderSystem(`http://127.0.0.1:${port}`)
  const requested = orders.request(WISH, 'T1')
  await waitUntil(() => asked > replies.length, { what: 'every reply was given' })
  orders.giveUp()
  expect(await requested).toBeUndefined()
  return orders.log
}

it.each(['exceeds_refundable', 'payment_not_refundable'])(
  'a repetition that is refused with %s until the end is recorded as refused, whatever fails after it',
  async (code) => {
    const refused = { status: 409, code }
    const { refused: recorded } = await requestUntilGivenUp([
      refused,
      { status: 503, code: 'unavailable' },
    ])
    expect(recorded).toMatchObject([{ paymentId: `${merchantCode}/P1`, amount: '30', code }])
  },
)

it('one that was never refused for good is not recorded as refused', async () => {
  const { refused } = await requestUntilGivenUp([
    { status: 409, code: 'payment_not_refundable' },
    { status: 404, code: 'payment_not_found' },
  ])
  expect(refused).toEqual([])
})
