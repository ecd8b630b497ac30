import { afterEach, expect, it } from 'vitest'
import { emptyTables } from '../../support/database.ts'
import { postIpn, signIpn, toForm } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
afterEach(() => emptyTables(rig.database))

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const PAID = signIpn({ svc_TransactionID: '41111111111111111', svc_PayToken: 'clear-token' })

async function send(body: string, headers?: Record<string, string>): Promise<string> {
  expect((await postIpn(rig.service.url, body, headers)).status).toBe(200)
  const [row] = await rig.database
    .sql`select body, verdict from ipn_events order by id desc limit 1`
  expect(row?.verdict).toBe('verified')
  return row?.body
}

it('a token is not stored, in JSON and in a form; everything else is', async () => {
  const expected = { ...PAID, svc_PayToken: '***' }
  expect(JSON.parse(await send(JSON.stringify(PAID)))).toEqual(expected)
  await emptyTables(rig.database)
  const stored = await send(toForm(PAID), FORM)
  expect(Object.fromEntries(new URLSearchParams(stored))).toEqual(expected)
})

it('tokens and cards in nested values are masked, also where those are the text of JSON', async () => {
  const ext = { card: { number: '4111111111111111', cvv: '123' }, token: 'clear', note: 'ok' }
  const masked = { card: { number: '411111******1111', cvv: '***' }, token: '***', note: 'ok' }
  const params = signIpn({ svc_TransactionID: 'T-1' })
  const stored = JSON.parse(await send(JSON.stringify({ ...params, svc_ExtData: ext })))
  expect(stored).toEqual({ ...params, svc_ExtData: masked })
  await emptyTables(rig.database)
  const form = toForm({ ...params, svc_ExtData: JSON.stringify(ext) })
  const kept = Object.fromEntries(new URLSearchParams(await send(form, FORM)))
  expect(JSON.parse(kept.svc_ExtData ?? '')).toEqual(masked)
})

it('a text of JSON in which nothing is masked stays as it was written, with the hash it is signed with', async () => {
  const number = '{"isLosslessNumber":true,"value":"x"}'
  const params = signIpn({ svc_TransactionID: number, svc_OrderID: '[ 1 ]', svc_OrderInfo: '{' })
  expect(JSON.parse(await send(JSON.stringify(params)))).toEqual(params)
})

it('a body without such members is stored byte for byte', async () => {
  const text = ` ${JSON.stringify(signIpn({ svc_TransactionID: '41111111111111111', svc_Amount: 10 }), undefined, 1)}`
  expect(await send(text)).toBe(text)
})
