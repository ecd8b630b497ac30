import { beforeAll, expect, it } from 'vitest'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { ask, expectTaken, RECEIVER, seedPaid } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let transactionId: string

beforeAll(async () => {
  const { database } = rig
  const payment = await seedPaid(database, { paymentMethod: 'QR' })
  transactionId = payment.transactionId
  await expectTaken(
    await ask({ url: rig.service.url }, payment.id, { receiver: RECEIVER, amount: '5' }),
  )
  await publishEvents(database.sql)
  const lost = Buffer.alloc(8, 9)
  await database.sql`update refunds set receiver_shown = overlay(receiver_shown placing ${lost} from 5 for 8)`
  await database.sql`
    update events set data = replace(data::text, data -> 'receiver' ->> 'sealed', translate(encode(
      overlay(decode(data -> 'receiver' ->> 'sealed', 'base64') placing ${lost} from 5 for 8), 'base64'), E'\\n', ''))::json
    where type = 'refund.created'`
})

const DATA_ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64')
const run = (...args: string[]) =>
  runCli(args, { DATABASE_URL: rig.database.url, DATA_ENCRYPTION_KEY })

it.each(['events', 'refunds'])(
  'what is sealed under a data key that is lost does not end the export of %s',
  async (list) => {
    expect(await run('export', list, '--format', 'jsonl')).toMatchObject({ code: 0 })
  },
)

it('what is sealed under a data key that is lost does not end a story', async () => {
  expect(await run('show', transactionId, '--json')).toMatchObject({ code: 0 })
})

it('a list in which nothing is sealed is exported as well', async () => {
  expect(await run('export', 'payments')).toMatchObject({ code: 0 })
})
