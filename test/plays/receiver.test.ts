import { createHash } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { erase } from '../../src/maintenance/delete-expired.ts'
import { maskReceiver, placeReceiver } from '../../src/refunds/receiver.ts'
import { Refund, RefundPreview, type RefundView, UNREADABLE } from '../../src/refunds/view.ts'
import type { Service } from '../../src/service.ts'
import { expectInvalid, readPage, withKey } from '../support/api.ts'
import {
  ask,
  countRows,
  expectTaken,
  findInTables,
  MASKED,
  payQuietly,
  RECEIVER,
  seedPaid,
} from '../support/ask.ts'
import { computeShownHmac } from '../support/body-hmac.ts'
import { emptyTables } from '../support/database.ts'
import { makeEncryption } from '../support/encryption.ts'
import { startGatewayTap } from '../support/gateway-tap.ts'
import { PATIENT_REFUNDS } from '../support/refunds.ts'
import { startTestService, withConfig } from '../support/service.ts'
import { keepLog } from '../support/sync.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Accepts requests; a worker is started where one is needed. */
const rig = useRig({ settings: { ROLE: 'web' } })
let url: string
beforeAll(() => {
  url = rig.service.url
})
beforeEach(() => emptyTables(rig.database))

it('a receiver is refused when one of its members is no text of a fit length', async () => {
  const wrong: [string, unknown][] = [
    ['accountName', ''],
    ['accountName', '   '],
    ['accountName', 'N'.repeat(141)],
    ['accountName', 'NGUYEN\nVAN A'],
    ['accountName', 'NGUYEN \ud800'],
    ['accountName', 5],
    ['accountName', undefined],
    ['accountNumber', '\n'],
    ['accountNumber', '1'.repeat(141)],
    ['accountNumber', '1234\n5678'],
    ['accountNumber', '1234\u0000'],
    ['accountNumber', 123456789],
    ['accountNumber', null],
    ['accountNumber', undefined],
    ['swiftCode', ''],
    ['swiftCode', 'A'.repeat(141)],
    ['swiftCode', 'ASCB\tVNVX'],
    ['swiftCode', undefined],
    // The gateway knows no such member.
    ['bankName', 'ACB'],
  ]
  const { id } = await seedPaid(rig.database, { paymentMethod: 'QR' })
  for (const [field, value] of wrong) {
    const response = await ask({ url }, id, { receiver: { ...RECEIVER, [field]: value } })
    const problem = await expectInvalid(response, `receiver.${field}`)
    expect(JSON.stringify(problem)).not.toContain(RECEIVER.accountNumber)
  }
})

/** Not of the usual form: each member with its path in hints, and in refusals of the strict check. */
const UNUSUAL: [string, string][] = [
  ['accountNumber', '123'],
  ['accountNumber', '1'.repeat(35)],
  ['accountNumber', '1234 5678'],
  ['accountNumber', 'VN.1234-5678'],
  ['swiftCode', 'ASCBVNV'],
  ['swiftCode', 'ASCBVNVXX'],
  ['swiftCode', 'ascbvnvx'],
  ['swiftCode', 'ASC1VNVX'],
  ['swiftCode', 'Ngân hàng Á Châu'],
]
const USUAL = ['ASCBVNVX', 'ASCBVNVXXXX', 'ASCBVN22']
const dryRun = (id: string, receiver: unknown) =>
  ask({ url, query: '?dryRun=true', idempotencyKey: null }, id, { receiver })

describe('by default a receiver is three texts', () => {
  it('and a preview warns of an unusual one, which is accepted', async () => {
    const { id } = await seedPaid(rig.database, { paymentMethod: 'QR', amount: '900' })
    const warning = expect.stringMatching(/^is not an? (account|SWIFT)/)
    const usual = USUAL.map((code) => ['swiftCode', code] as const)
    for (const [field, value] of [...UNUSUAL, ...usual]) {
      const receiver = { ...RECEIVER, [field]: value }
      const preview = RefundPreview.parse(await (await dryRun(id, receiver)).json())
      expect(preview.wouldSend.receiver).toEqual(maskReceiver(receiver))
      expect(preview.hints, value).toEqual(
        USUAL.includes(value) ? [] : [{ path: `receiver.${field}`, message: warning }],
      )
      const refund = await expectTaken(await ask({ url }, id, { amount: '1', receiver }))
      expect(refund.receiver).toEqual(maskReceiver(receiver))
    }
  })

  it('whose surrounding spaces count neither for the check nor for a repeated request', async () => {
    const { id } = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const padded = {
      accountName: ` ${RECEIVER.accountName}`,
      accountNumber: `${RECEIVER.accountNumber}\n`,
      swiftCode: `\t${RECEIVER.swiftCode} `,
    }
    const given = { url, idempotencyKey: 'padded' }
    const refund = await expectTaken(await ask(given, id, { receiver: padded }))
    expect(refund.receiver).toEqual(MASKED)
    const again = await expectTaken(await ask(given, id, { receiver: RECEIVER }), true)
    expect(again.id).toBe(refund.id)
  })
})

describe('with REFUND_RECEIVER_CHECK=strict', () => {
  const strictly = <T>(run: () => Promise<T>) =>
    withConfig(rig, { REFUND_RECEIVER_CHECK: 'strict' }, run)

  it('an unusual receiver is refused, and every other accepted', async () => {
    const { id } = await seedPaid(rig.database, { paymentMethod: 'QR' })
    for (const [field, value] of UNUSUAL) {
      const receiver = { ...RECEIVER, [field]: value }
      for (const request of [() => ask({ url }, id, { receiver }), () => dryRun(id, receiver)]) {
        const response = await strictly(request)
        const problem = await expectInvalid(response, `receiver.${field}`)
        expect(JSON.stringify(problem)).not.toContain(RECEIVER.accountNumber)
      }
    }
    expect(await countRows(rig.database)).toMatchObject({ refunds: 0 })
    for (const swiftCode of USUAL) {
      const body = { amount: '1', receiver: { ...RECEIVER, swiftCode } }
      await expectTaken(await strictly(() => ask({ url }, id, body)))
    }
  })

  it('a refund that was requested before the setting changed is replayed', async () => {
    const { id } = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const body = { receiver: { ...RECEIVER, swiftCode: 'asc bank' } }
    const idempotencyKey = 'before the check'
    const refund = await expectTaken(await ask({ url, idempotencyKey }, id, body))
    const request = () => ask({ url, idempotencyKey }, id, body)
    const again = await expectTaken(await strictly(request), true)
    expect(again.id).toBe(refund.id)
  })
})

describe('on the wire a receiver', () => {
  it('is the text that was given, without the spaces around it', async () => {
    await startWorker()
    const payment = await payQuietly(rig)
    const receiver = {
      accountName: ' Nguyễn Văn A ',
      accountNumber: '1234 5678\n',
      swiftCode: 'acb',
    }
    const refund = await expectTaken(await ask({ url }, payment.id, { receiver }))
    await untilStatus(refund.id, 'succeeded')
    const calls = Calls.parse(await rig.control('GET', `/calls?command=REFUND`))
    const [sent] = calls.data.filter(({ requestId }) => requestId === refund.id)
    expect(sent).toMatchObject({
      params: {
        svc_Receiver: { accountName: 'Nguyễn Văn A', accountNumber: '•••• 5678', swiftCode: 'acb' },
      },
    })
  })

  it('is the Base64 of its compact JSON in the order of the specification, under the published hash', async () => {
    const tap = await startGatewayTap(rig.sandbox.url)
    await startWorker({}, tap.url)
    const payment = await payQuietly(rig, { paymentId: '1439211', amount: '20000000' })
    const { swiftCode, accountNumber, accountName } = RECEIVER
    const body = { amount: '10000.00', receiver: { swiftCode, accountNumber, accountName } }
    const refund = await expectTaken(await ask({ url }, payment.id, body))
    await untilStatus(refund.id, 'succeeded')
    const [sent = '', ...more] = tap.refunds()
    expect(more).toEqual([])
    expect(JSON.parse(sent)).toEqual({
      svc_Command: 'REFUND',
      svc_MerchantCode: 'UFLIYL',
      svc_RequestID: refund.id,
      svc_PaymentID: '1439211',
      svc_Amount: 10000,
      svc_Receiver:
        'eyJhY2NvdW50TmFtZSI6Ik5HVVlFTiBWQU4gQSIsImFjY291bnROdW1iZXIiOiIxMjM0NTY3ODkiLCJzd2lmdENvZGUiOiJBU0NCVk5WWCJ9',
      svc_Version: '1',
      svc_SecureHash: '88cafbc3bc1312a4dbae11dedf17819ea6462b85a218298417a917f1797597fa',
    })
    const [row] = await rig.database.sql<{ hmac: string }[]>`
      select encode(body_hmac, 'hex') as hmac from refund_attempts where refund_id = ${refund.id}`
    const sha256 = createHash('sha256').update(sent).digest('hex')
    expect(row?.hmac).toBe(computeShownHmac(rig.service, sha256))
  })
})

describe('at rest a receiver', () => {
  it('is readable in no table and no response, while it waits and after it was sent', async () => {
    const payment = await payQuietly(rig)
    const { log, text } = keepLog()
    rig.service.ctx.log = log
    const body = { amount: '10', receiver: RECEIVER, reason: 'returned' }
    const given = { url, idempotencyKey: 'at rest' }
    const refund = await expectTaken(await ask(given, payment.id, body))
    expect(refund.receiver).toEqual(MASKED)
    const isReadable = () => findInTables(rig.database, RECEIVER.accountNumber)
    expect(await isReadable()).toEqual([])
    const worker = await startWorker()
    worker.ctx.log = log
    await untilStatus(refund.id, 'succeeded')
    const broken = { ...body, receiver: { ...RECEIVER, swiftCode: '' } }
    const answers = [
      await ask(given, payment.id, body),
      await ask(given, payment.id, { ...body, amount: '11' }),
      await ask(given, payment.id, broken),
      await ask({ url, query: '?dryRun=true' }, payment.id, body),
      await rig.api(`/v1/refunds/${refund.id}?include=proof`),
      await rig.api('/v1/refunds'),
      await rig.api(`/v1/transactions/${payment.transactionId}/timeline`),
      await rig.api(`/v1/transactions/${payment.transactionId}`),
      await fetch(`${url}/metrics`, withKey()),
    ]
    for (const answer of answers) expect(await answer.text()).not.toContain('123456789')
    for (const secret of [RECEIVER.accountNumber, RECEIVER.accountName]) {
      expect(await findInTables(rig.database, secret)).toEqual([])
    }
    expect(await findInTables(rig.database, 'returned')).toContain('refunds.reason')
    expect(text()).toContain('refund requested')
    expect(text()).toContain('refund sent')
    expect(text()).not.toContain('123456789')
    expect(text()).not.toContain(RECEIVER.accountName)
  })

  it('shows no more than half of a short number', () => {
    const mask = (accountNumber: string) =>
      maskReceiver({ ...RECEIVER, accountNumber }).accountNumber
    expect(mask('1')).toBe('••••')
    expect(mask('12')).toBe('•••• 2')
    expect(mask('1234')).toBe('•••• 34')
    expect(mask('12\u{1f3e6}\u{1f3e6}')).toBe('•••• \u{1f3e6}\u{1f3e6}')
    expect(mask('12345')).toBe('•••• 45')
    expect(mask('12345678')).toBe('•••• 5678')
    expect(mask(`${'A'.repeat(30)}WXYZ`)).toBe('•••• WXYZ')
  })

  it('is erased once its refund is over and REFUND_CONFIRM_FAILED_MS have passed, not before', async () => {
    const { database, service } = rig
    const worker = await startWorker({ REFUND_CONFIRM_FAILED_MS: '3600000' })
    const ended = await payQuietly(rig)
    const refund = await expectTaken(await ask({ url }, ended.id, { receiver: RECEIVER }))
    await untilStatus(refund.id, 'succeeded')
    await worker.stop()
    const open = await payQuietly(rig)
    const waiting = await expectTaken(await ask({ url }, open.id, { receiver: RECEIVER }))
    expect(await erase(service.ctx, 'receivers')).toBe(0)
    const [row] = await database.sql<{ afterMs: number }[]>`
      select (extract(epoch from forget_receiver_at - updated_at) * 1000)::float8 as "afterMs"
      from refunds where refund_id = ${refund.id}`
    expect(row?.afterMs).toBe(3_600_000)
    await database.sql`update refunds set forget_receiver_at = forget_receiver_at - interval '1 hour'`
    expect(await erase(service.ctx, 'receivers')).toBe(1)
    const kept = await database.sql`select refund_id from refunds where receiver is not null`
    expect(kept).toEqual([{ refund_id: waiting.id }])
    expect((await readRefund(refund.id)).receiver).toEqual(MASKED)
  })
})

describe('with a data key that is not there', () => {
  const lost = makeEncryption()
  /** Encrypts the refund's receiver again, under the lost key. */
  async function loseReceiver(refundId: string): Promise<void> {
    const [receiver, shown] = (['receiver', 'receiver_shown'] as const).map((column) =>
      lost.encrypt(JSON.stringify(MASKED), placeReceiver(column, refundId)),
    )
    await rig.database.sql`
      update refunds set receiver = ${receiver ?? null}, receiver_shown = ${shown ?? null}
      where refund_id = ${refundId}`
  }

  /** The first reader of all is told to come again, until the process has looked for the key. */
  async function untilShown(refundId: string): Promise<void> {
    const isShown = async () => (await rig.api(`/v1/refunds/${refundId}`)).status === 200
    await waitUntil(isShown, { what: 'the refund' })
  }

  it('a refund stays pending, is not sent, and the log explains why; other refunds are sent', async () => {
    const payment = await payQuietly(rig)
    const refund = await expectTaken(await ask({ url }, payment.id, { receiver: RECEIVER }))
    const [kept] = await rig.database.sql`select receiver, receiver_shown from refunds`
    await loseReceiver(refund.id)
    const plain = await payQuietly(rig, { paymentMethod: 'CC' })
    const other = await expectTaken(await ask({ url }, plain.id))
    const worker = await startWorker()
    const { log, errors } = keepLog()
    worker.ctx.log = log
    await waitUntil(() => errors().length > 2, { what: 'three looks at the refund' })
    for (const { msg } of errors()) expect(msg).toMatch(/not sent: .* DATA_ENCRYPTION_KEY/)
    await untilStatus(other.id, 'succeeded')
    await untilShown(refund.id)
    expect(await readRefund(refund.id)).toMatchObject({ status: 'pending', receiver: UNREADABLE })
    await rig.database.sql`
      update refunds set receiver = ${kept?.receiver}, receiver_shown = ${kept?.receiver_shown}
      where refund_id = ${refund.id}`
    await untilStatus(refund.id, 'succeeded')
    const calls = await rig.control('GET', '/calls?command=REFUND')
    const asked = Calls.parse(calls).data.filter(({ requestId }) => requestId === refund.id)
    expect(asked).toMatchObject([{ params: { svc_Receiver: MASKED } }])
  })

  it('refunds are read, with a receiver marked as unreadable', async () => {
    const payment = await payQuietly(rig)
    const refund = await expectTaken(await ask({ url }, payment.id, { receiver: RECEIVER }))
    await loseReceiver(refund.id)
    await untilShown(refund.id)
    expect(await readRefund(refund.id)).toMatchObject({ receiver: UNREADABLE })
    const { data } = await readPage(await rig.api('/v1/refunds'))
    expect(data).toMatchObject([{ id: refund.id, receiver: UNREADABLE }])
  })

  it('a receiver moved to the other column of its refund is unreadable', async () => {
    const payment = await payQuietly(rig)
    const refund = await expectTaken(await ask({ url }, payment.id, { receiver: RECEIVER }))
    await rig.database.sql`update refunds set receiver_shown = receiver`
    expect(await readRefund(refund.id)).toMatchObject({ receiver: UNREADABLE })
  })
})

const Calls = z.object({ data: z.array(z.looseObject({ requestId: z.string().nullable() })) })

/** A worker that sends and reconciles until the test is over, with short intervals. */
async function startWorker(
  settings: Record<string, string> = {},
  gatewayUrl = rig.sandbox.url,
): Promise<Service> {
  const worker = await startTestService(rig.database, gatewayUrl, {
    settings: { ...PATIENT_REFUNDS, ROLE: 'worker', ...settings },
  })
  onTestFinished(() => worker.stop())
  return worker
}

async function readRefund(refundId: string): Promise<RefundView> {
  return Refund.parse(await (await rig.api(`/v1/refunds/${refundId}`)).json())
}

async function untilStatus(refundId: string, status: RefundView['status']): Promise<void> {
  const reached = async () => (await readRefund(refundId)).status === status
  await waitUntil(reached, { what: `refund ${refundId} ${status}` })
}
