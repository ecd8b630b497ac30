import { describe, expect, it, onTestFinished } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { warnOfUnsigned } from '../../../src/ipn/answer.ts'
import { OTHER, TWO_ACCOUNTS } from '../../support/api.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { countRows } from '../../support/database.ts'
import { createReader } from '../../support/receive.ts'
import { buildTestEnvironment, MERCHANT, postIpn, signIpn, toForm } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'

const GOOD = signIpn({ svc_TransactionID: 'T1' })

describe('the address list', () => {
  async function startHere(settings: Record<string, string>) {
    const rig = await borrowRig({ settings: { ...settings, ROLE: 'web' } })
    onTestFinished(() => rig.stop())
    const post = async (forwardedFor?: string) => {
      const forwarded = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }
      const headers = { 'content-type': 'application/json', ...forwarded }
      return await postIpn(rig.service.url, GOOD, headers)
    }
    return { rig, post }
  }

  it('without trusted proxies only the peer counts, whatever X-Forwarded-For contains', async () => {
    const { rig, post } = await startHere({ IPN_ALLOW_CIDRS: '203.0.113.0/24' })
    for (const claim of [undefined, '203.0.113.9', '127.0.0.1, 203.0.113.9']) {
      expect(await post(claim)).toEqual({
        status: 403,
        answer: { respcode: 1, respmsg: 'address not allowed' },
      })
    }
    expect(await countRows(rig.database)).toEqual({})
    const open = await startHere({ IPN_ALLOW_CIDRS: '::1,127.0.0.0/8' })
    expect((await open.post('203.0.113.9')).status).toBe(200)
    const rows = await open.rig.database.sql`select address from ipn_events`
    expect(rows).toEqual([{ address: '127.0.0.1' }])
  })

  it('behind trusted proxies the nearest address that is not a proxy counts', async () => {
    const { rig, post } = await startHere({
      IPN_ALLOW_CIDRS: '203.0.113.0/24,2001:db8::/32',
      TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8',
    })
    const cases = [
      ['203.0.113.9, 10.0.0.7', 200],
      ['2001:db8::7', 200],
      [undefined, 403],
      ['203.0.113.9, 198.51.100.1, 10.0.0.7', 403],
      ['203.0.113.9, nonsense', 403],
    ] as const
    for (const [forwardedFor, status] of cases) {
      expect([forwardedFor, (await post(forwardedFor)).status]).toEqual([forwardedFor, status])
    }
    const rows = await rig.database.sql`select address, deliveries from ipn_events`
    expect(rows).toEqual([{ address: '203.0.113.9', deliveries: 2 }])
  })

  it('an IPv4 peer on a dual-stack socket is known by its IPv4 address', async () => {
    const { rig } = await startHere({ HOST: '::', IPN_ALLOW_CIDRS: '127.0.0.1' })
    const url = rig.service.url.replace('[::]', '127.0.0.1')
    expect((await postIpn(url, GOOD)).status).toBe(200)
  })
})

/** Reads notifications with these settings; returns what became of the hash of each, or why it was refused. */
async function readAll(settings: Record<string, string>, bodies: readonly object[]) {
  const read = createReader(settings)
  const results = await Promise.all(bodies.map((body) => read(JSON.stringify(body))))
  return results.map(({ receipt, arrival }) =>
    'why' in receipt ? receipt.why.replace('svc_SecureHash is ', 'refused: ') : arrival?.verdict,
  )
}

describe('the signature rule', () => {
  const { svc_SecureHash: _, ...unsigned } = GOOD
  const ALL = [GOOD, { ...unsigned, svc_OrderID: 'unsigned' }, { ...GOOD, svc_OrderID: 'forged' }]

  it.each([
    ['required', ['verified', 'refused: missing', 'refused: wrong']],
    ['optional', ['verified', 'missing', 'refused: wrong']],
    ['off', ['verified', 'missing', 'wrong']],
  ])('%s: right, missing and wrong', async (rule, verdicts) => {
    expect(await readAll({ IPN_SIGNATURE: rule }, ALL)).toEqual(verdicts)
  })

  it('warns at start unless it is required', async () => {
    const { log, saying } = keepLog()
    const rig = await borrowRig({ settings: { IPN_SIGNATURE: 'off', ROLE: 'web' }, log })
    onTestFinished(() => rig.stop())
    expect(saying('IPN_SIGNATURE=off accepts')).toHaveLength(1)
    for (const rule of ['optional', 'required']) {
      const environment = buildTestEnvironment('http://127.0.0.1:1', { IPN_SIGNATURE: rule })
      warnOfUnsigned({ config: readConfig(environment), log })
      const warned = saying(`IPN_SIGNATURE=${rule} accepts`)
      expect(warned).toHaveLength(rule === 'optional' ? 1 : 0)
    }
  })

  it('the previous secret is still accepted, an older one is not', async () => {
    const settings = { GATEWAY_SECRET: 'newest', GATEWAY_SECRET_PREVIOUS: MERCHANT.secret }
    const by = (secret: string) => signIpn({ svc_TransactionID: 'T2' }, { secret })
    const verdicts = await readAll(settings, [GOOD, by('newest'), by('oldest')])
    expect(verdicts).toEqual(['verified', 'verified', 'refused: wrong'])
  })

  it.each([
    [{ IPN_HASH_EXCLUDE: 'none' }, ['verified', 'refused: wrong', 'verified', 'refused: wrong']],
    [{}, ['refused: wrong', 'verified', 'verified', 'refused: wrong']],
  ])(
    'with %j exclusions apply to payment notifications, never to refund notifications',
    async (settings, verdicts) => {
      const payment = { svc_TransactionID: 'T1', svc_TransAmount: 5 }
      const refund = { svc_Command: 'REFUND', svc_RequestID: 'R1', svc_TransAmount: 5 }
      const bodies = [payment, refund].flatMap((fields) => [
        signIpn(fields, { exclude: [] }),
        signIpn(fields, { exclude: ['TransAmount'] }),
      ])
      expect(await readAll(settings, bodies)).toEqual(verdicts)
    },
  )
})

describe('several accounts', () => {
  const signOther = (secret = OTHER.secret) =>
    signIpn({ svc_MerchantCode: OTHER.merchantCode, svc_TransactionID: 'T1' }, { secret })

  it('each signs with its own secret, whatever the id of its transaction', async () => {
    const read = createReader(TWO_ACCOUNTS)
    for (const [body, { merchantCode }] of [
      [GOOD, MERCHANT],
      [signOther(), OTHER],
    ] as const) {
      const { arrival } = await read(JSON.stringify(body))
      expect(arrival).toMatchObject({ merchantCode, transactionId: 'T1', verdict: 'verified' })
    }
  })

  it('no code, an empty one, an unknown one and the hash of another merchant are refused', async () => {
    const { svc_MerchantCode: _code, ...nameless } = GOOD
    const of = (svc_MerchantCode: string) => ({ ...GOOD, svc_MerchantCode })
    const bodies = [nameless, of(''), of('SHOP3'), signOther(MERCHANT.secret), of('OTHER1')]
    expect(await readAll(TWO_ACCOUNTS, bodies)).toEqual([
      ...['svc_MerchantCode is missing', 'svc_MerchantCode is missing', 'unknown svc_MerchantCode'],
      ...['refused: wrong', 'refused: wrong'],
    ])
  })

  it('with one account the code may be missing or, as in a form, empty', async () => {
    const fields = { svc_Command: 'PAY', svc_TransactionID: 'T1' }
    const hash = computeSecureHash(fields, MERCHANT.secret, { prefix: 'svc', exclude: [] })
    const read = createReader()
    const form = toForm(signIpn({ svc_TransactionID: 'T2', svc_MerchantCode: '' }))
    for (const { arrival } of [
      await read(JSON.stringify({ ...fields, svc_SecureHash: hash })),
      await read(form, 'form'),
    ]) {
      expect(arrival).toMatchObject({ merchantCode: MERCHANT.merchantCode, verdict: 'verified' })
    }
  })
})
