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
    await send({ ...PAID, [`${'n'.repeat(31)}😀${'n'.repeat(1_000)}`]: 'x' })
    const name = `${'n'.repeat(31)}\ufffd…`
    expect(JSON.parse(await readBody())).toEqual({ ...PAID, [name]: '(not kept)' })
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

describe('what is masked', () => {
  const TOKEN = signIpn({ svc_TransactionID: '41111111111111111', svc_PayToken: 'clear-token' })
  async function store(body: string, headers?: Record<string, string>): Promise<string> {
    await emptyTables(rig.database)
    await send(body, headers)
    return await readBody()
  }

  it('a token is not stored, in JSON and in a form; everything else is', async () => {
    const expected = { ...TOKEN, svc_PayToken: '***' }
    expect(JSON.parse(await store(JSON.stringify(TOKEN)))).toEqual(expected)
    const stored = await store(toForm(TOKEN), FORM)
    expect(Object.fromEntries(new URLSearchParams(stored))).toEqual(expected)
  })

  it('tokens and cards in nested values are masked, also where those are the text of JSON', async () => {
    const ext = { card: { number: '4111111111111111', cvv: '123' }, token: 'clear', note: 'ok' }
    const masked = { card: { number: '411111******1111', cvv: '***' }, token: '***', note: 'ok' }
    const params = signIpn({ svc_TransactionID: 'T-1' })
    const stored = JSON.parse(await store(JSON.stringify({ ...params, svc_ExtData: ext })))
    expect(stored).toEqual({ ...params, svc_ExtData: masked })
    const form = toForm({ ...params, svc_ExtData: JSON.stringify(ext) })
    const kept = Object.fromEntries(new URLSearchParams(await store(form, FORM)))
    expect(JSON.parse(kept.svc_ExtData ?? '')).toEqual(masked)
  })

  it.each(['svc_OrderInfo', 'svc_ResponseMsg', 'svc_ExtData'])(
    'a card number in the words of %s, beside an id and an amount that look like one',
    async (name) => {
      const ids = { svc_TransactionID: '41111111111111111', svc_Amount: '4111111111111111' }
      for (const [text, masked] of [
        ['Paid with 4111 1111 1111 1111', 'Paid with 4111 11** **** 1111'],
        ['card: 4111-1111%2D1111-1111', 'card: 4111-11**-****-1111'],
      ]) {
        const params = signIpn({ ...ids, [name]: text ?? '' })
        const stored = JSON.parse(await store(JSON.stringify(params)))
        const kept = Object.fromEntries(new URLSearchParams(await store(toForm(params), FORM)))
        for (const one of [stored, kept]) expect(one).toEqual({ ...params, [name]: masked })
      }
    },
  )

  it('a text of JSON in which nothing is masked stays as it was written, with the hash it is signed with', async () => {
    const number = '{"isLosslessNumber":true,"value":"x"}'
    const params = signIpn({ svc_TransactionID: number, svc_OrderID: '[ 1 ]', svc_OrderInfo: '{' })
    expect(JSON.parse(await store(JSON.stringify(params)))).toEqual(params)
  })

  it('a body without such members is stored byte for byte', async () => {
    const text = ` ${JSON.stringify(signIpn({ svc_TransactionID: '41111111111111111', svc_Amount: 10 }), undefined, 1)}`
    expect(await store(text)).toBe(text)
  })
})
