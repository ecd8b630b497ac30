import { afterEach, describe, expect, it } from 'vitest'
import { emptyTables } from '../../support/database.ts'
import { PUBLISHED_REFUNDS } from '../../support/published.ts'
import { sign } from '../../support/recut.ts'
import { postIpn, signIpn, toForm } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', IPN_KNOWN_MEMBERS: 'BankCode' } })
afterEach(() => emptyTables(rig.database))

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const PAID = signIpn({ svc_TransactionID: 'T-KEPT', svc_OrderID: 'DH1', svc_Own: 'signed' })

async function send(body: Record<string, unknown> | string, headers?: Record<string, string>) {
  expect((await postIpn(rig.service.url, body, headers)).status).toBe(200)
}
async function readBody(): Promise<string> {
  const rows = await rig.database.sql`select body from ipn_events`
  expect(rows).toHaveLength(1)
  return rows[0]?.body
}
const junk = (count: number, value: string, name = 'note') =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}${n}`, value]))

describe('of a notification is stored', () => {
  it('what is signed or published with its value, and of other members the name', async () => {
    const listed = { svc_TransAmount: '5', svc_ExtData: { a: 'b' } }
    await send({ ...PAID, ...listed, note: 'x', svcNote: { a: 1 } })
    const names = { note: '(not kept)', svcNote: '(not kept)' }
    expect(JSON.parse(await readBody())).toEqual({ ...PAID, ...listed, ...names })
    await emptyTables(rig.database)
    await send(toForm({ ...PAID, svc_TransAmount: 5, note: 'x' }), FORM)
    const stored = Object.fromEntries(new URLSearchParams(await readBody()))
    expect(stored).toEqual({ ...PAID, svc_TransAmount: '5', note: '(not kept)' })
  })

  it('sixteen names of members that any sender can add, each of 32 characters at most', async () => {
    await send({ ...PAID, ...junk(40, 'x', 'n'.repeat(1_000)) })
    await emptyTables(rig.database)
    await send({ ...PAID, ...junk(40, 'x') })
    const names = Object.keys(JSON.parse(await readBody()))
    expect(names.filter((name) => name.startsWith('note'))).toHaveLength(16)
    await emptyTables(rig.database)
    await send({ ...PAID, ['n'.repeat(1_000)]: 'x' })
    expect(JSON.parse(await readBody())).toEqual({ ...PAID, [`${'n'.repeat(32)}…`]: '(not kept)' })
  })

  it('one row for the same signed content, however often and with whatever else it comes', async () => {
    for (let n = 0; n < 20; n += 1) {
      await send({
        ...PAID,
        [`note${n}`]: 'x'.repeat(1_000),
        svc_TransAmount: n,
        svc_ExtData: { n },
      })
    }
    const rows = await rig.database.sql`select deliveries from ipn_events`
    expect(rows).toEqual([{ deliveries: 20 }])
  })
})

describe('at most 8 KiB are stored', () => {
  const ofBytes = (text: string) => Buffer.byteLength(text)

  it('and what is not signed is cut first, with a mark', async () => {
    const info = 'i'.repeat(3_000)
    const paid = signIpn({ svc_TransactionID: 'T-KEPT', svc_OrderInfo: info })
    await send({ ...paid, svc_ExtData: 'e'.repeat(60_000) })
    const stored = JSON.parse(await readBody())
    expect(stored).toEqual({
      ...paid,
      svc_ExtData: `${'e'.repeat(200)}… (shortened from 60000 characters)`,
    })
  })

  it.each([
    [
      'a signed text',
      signIpn({ svc_TransactionID: 'T-KEPT', svc_OrderInfo: '\u0001'.repeat(9_000) }),
    ],
    ['a signed name', signIpn({ svc_TransactionID: 'T-KEPT', [`svc_${'đ'.repeat(20_000)}`]: 'x' })],
    ['nested values', { ...PAID, svc_ExtData: Array(900).fill('1'.repeat(60)) }],
    ['white space', `${JSON.stringify(PAID)}${' '.repeat(60_000)}`],
    ['everything', { ...PAID, ...junk(40, 'x', 'đ'.repeat(500)), svc_ExtData: 'đ'.repeat(9_000) }],
  ])('of %s, and all of it is accepted', async (_, body) => {
    await send(body)
    const stored = await readBody()
    expect(ofBytes(stored)).toBeLessThanOrEqual(8 * 1024)
    expect(stored).toContain('T-KEPT')
    await emptyTables(rig.database)
    if (typeof body === 'string') return
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(body))
      form.append(name, String(value).slice(0, 9_000))
    const { status } = await postIpn(rig.service.url, form.toString(), FORM)
    if (status !== 200) return
    expect(ofBytes(await readBody())).toBeLessThanOrEqual(8 * 1024)
  })

  it('and the words and the fee of a refund stay, whatever was added to the copy that came first', async () => {
    const { 'a refund': published = {} } = PUBLISHED_REFUNDS
    const refund = sign(published)
    const padding = junk(45, 'x'.repeat(300), '\u0111\u0001'.repeat(100))
    await send({ ...refund, ...padding, TransAmount: 'x'.repeat(9_000) })
    expect(JSON.parse(await readBody())).toMatchObject(refund)
  })
})
