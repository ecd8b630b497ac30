import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { countRows } from '../../support/database.ts'
import {
  MERCHANT,
  postIpn,
  type Rig,
  type RigOptions,
  signIpn,
  toForm,
} from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'

async function startHere(options: RigOptions): Promise<Rig> {
  const rig = await borrowRig(options)
  onTestFinished(() => rig.stop())
  return rig
}

const GOOD = signIpn({ svc_TransactionID: 'T1' })
const { svc_SecureHash: _, ...UNSIGNED } = GOOD

async function listEvents(rig: Rig) {
  return [
    ...(await rig.database.sql`
      select merchant_code as merchant, transaction_id as id, verdict, address, deliveries
      from ipn_events order by first_received_at, id`),
  ]
}

describe('the address list', () => {
  const post = (rig: Rig, forwardedFor?: string) =>
    postIpn(rig.service.url, GOOD, {
      'content-type': 'application/json',
      ...(forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }),
    })

  it('without trusted proxies only the peer counts, whatever X-Forwarded-For contains', async () => {
    const rig = await startHere({ settings: { IPN_ALLOW_CIDRS: '203.0.113.0/24' } })
    for (const claim of [undefined, '203.0.113.9', '127.0.0.1, 203.0.113.9']) {
      expect(await post(rig, claim)).toEqual({
        status: 403,
        answer: { respcode: 1, respmsg: 'address not allowed' },
      })
    }
    expect(await countRows(rig.database)).toEqual({})
  })

  it('a peer in the list passes, and X-Forwarded-For does not become its address', async () => {
    const rig = await startHere({ settings: { IPN_ALLOW_CIDRS: '::1,127.0.0.0/8' } })
    expect((await post(rig, '203.0.113.9')).status).toBe(200)
    expect(await listEvents(rig)).toMatchObject([{ address: '127.0.0.1' }])
  })

  it('behind trusted proxies the nearest address that is not a proxy counts', async () => {
    const rig = await startHere({
      settings: {
        IPN_ALLOW_CIDRS: '203.0.113.0/24,2001:db8::/32',
        TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8',
      },
    })
    const cases: [string | undefined, number][] = [
      ['203.0.113.9', 200],
      ['198.51.100.1, 203.0.113.9', 200],
      ['203.0.113.9, 10.0.0.7', 200],
      ['::ffff:203.0.113.9', 200],
      ['2001:db8::7', 200],
      [undefined, 403],
      ['198.51.100.1', 403],
      ['203.0.113.9, 198.51.100.1', 403],
      ['203.0.113.9, 198.51.100.1, 10.0.0.7', 403],
      ['203.0.113.9, nonsense', 403],
      ['nonsense', 403],
      ['203.0.113.9,', 403],
    ]
    const answers = []
    for (const [forwardedFor] of cases) {
      answers.push([forwardedFor, (await post(rig, forwardedFor)).status])
    }
    expect(answers).toEqual(cases)
    expect(await listEvents(rig)).toMatchObject([{ address: '203.0.113.9', deliveries: 5 }])
  })

  it('an invalid address is never stored', async () => {
    const rig = await startHere({ settings: { TRUSTED_PROXIES: '127.0.0.0/8' } })
    expect((await post(rig, '203.0.113.9, <script>')).status).toBe(200)
    expect(await listEvents(rig)).toMatchObject([{ address: '127.0.0.1' }])
  })

  it('an IPv4 peer on a dual-stack socket is known by its IPv4 address', async () => {
    const rig = await startHere({ settings: { HOST: '::', IPN_ALLOW_CIDRS: '127.0.0.1' } })
    const url = rig.service.url.replace('[::]', '127.0.0.1')
    expect((await postIpn(url, GOOD)).status).toBe(200)
    expect(await listEvents(rig)).toMatchObject([{ address: '127.0.0.1' }])
  })
})

describe('the signature rule', () => {
  const WRONG = { ...GOOD, svc_OrderID: 'forged' }
  const MISSING = { ...UNSIGNED, svc_OrderID: 'unsigned' }

  it.each([
    ['required', [200, 401, 401], ['verified']],
    ['optional', [200, 200, 401], ['verified', 'missing']],
    ['off', [200, 200, 200], ['verified', 'missing', 'wrong']],
  ])('%s: right, missing and wrong get %j', async (rule, statuses, verdicts) => {
    const rig = await startHere({ settings: { IPN_SIGNATURE: rule } })
    const answers = []
    for (const body of [GOOD, MISSING, WRONG]) answers.push(await postIpn(rig.service.url, body))
    expect(answers.map(({ status }) => status)).toEqual(statuses)
    expect((await listEvents(rig)).map(({ verdict }) => verdict)).toEqual(verdicts)
  })

  it.each(['required', 'optional', 'off'])(
    '%s warns at start unless it is required',
    async (rule) => {
      const { log, text } = keepLog()
      await startHere({ settings: { IPN_SIGNATURE: rule, ROLE: 'web' }, log })
      const warned = text().includes(`IPN_SIGNATURE=${rule} accepts`)
      expect(warned).toBe(rule !== 'required')
    },
  )

  it('the previous secret is still accepted, an older one is not', async () => {
    const settings = { GATEWAY_SECRET: 'newest', GATEWAY_SECRET_PREVIOUS: MERCHANT.secret }
    const rig = await startHere({ settings })
    const newest = signIpn({ svc_TransactionID: 'T2' }, { secret: 'newest' })
    const oldest = signIpn({ svc_TransactionID: 'T3' }, { secret: 'oldest' })
    const answers = []
    for (const body of [GOOD, newest, oldest]) answers.push(await postIpn(rig.service.url, body))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401])
  })

  it.each([
    [{ IPN_HASH_EXCLUDE: 'none' }, [200, 401, 200, 401]],
    [{}, [401, 200, 200, 401]],
  ])(
    'with %j exclusions apply to payment notifications, never to refund notifications',
    async (settings, statuses) => {
      const rig = await startHere({ settings })
      const payment = { svc_TransactionID: 'T1', svc_TransAmount: 5 }
      const refund = { svc_Command: 'REFUND', svc_RequestID: 'R1', svc_TransAmount: 5 }
      const bodies = [payment, refund].flatMap((fields) => [
        signIpn(fields, { exclude: [] }),
        signIpn(fields, { exclude: ['TransAmount'] }),
      ])
      const answers = []
      for (const body of bodies) answers.push((await postIpn(rig.service.url, body)).status)
      expect(answers).toEqual(statuses)
    },
  )
})

describe('several accounts', () => {
  const OTHER = { merchantCode: 'SHOP2', secret: 'secret-of-the-second' }

  async function startWithTwo(): Promise<Rig> {
    const folder = mkdtempSync(join(tmpdir(), 'ipn-accounts-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'merchants.json')
    writeFileSync(file, JSON.stringify([MERCHANT, OTHER]))
    return startHere({
      settings: { MERCHANTS_FILE: file },
      sandbox: { accounts: [MERCHANT, OTHER] },
    })
  }
  const signOther = (fields: Record<string, string>, secret = OTHER.secret) =>
    signIpn({ svc_MerchantCode: OTHER.merchantCode, ...fields }, { secret })

  it('each signs with its own secret, and the same transaction id is two transactions', async () => {
    const rig = await startWithTwo()
    expect((await postIpn(rig.service.url, GOOD)).status).toBe(200)
    expect((await postIpn(rig.service.url, signOther({ svc_TransactionID: 'T1' }))).status).toBe(
      200,
    )
    expect(await listEvents(rig)).toMatchObject([
      { merchant: 'UFLIYL', id: 'T1', deliveries: 1 },
      { merchant: 'SHOP2', id: 'T1', deliveries: 1 },
    ])
    expect((await countRows(rig.database)).transactions).toBe(2)
  })

  it('no code, or an empty one, is 400, an unknown one 404, the hash of another merchant 401', async () => {
    const rig = await startWithTwo()
    const { svc_MerchantCode: _code, ...nameless } = GOOD
    const refused: [Record<string, unknown>, number, string][] = [
      [nameless, 400, 'svc_MerchantCode is missing'],
      [{ ...GOOD, svc_MerchantCode: '' }, 400, 'svc_MerchantCode is missing'],
      [{ ...GOOD, svc_MerchantCode: 'SHOP3' }, 404, 'unknown svc_MerchantCode'],
      [signOther({ svc_TransactionID: 'T1' }, MERCHANT.secret), 401, 'svc_SecureHash is wrong'],
      [{ ...GOOD, svc_MerchantCode: 'SHOP2' }, 401, 'svc_SecureHash is wrong'],
    ]
    for (const [body, status, why] of refused) {
      const answer = { respcode: 1, respmsg: why }
      expect(await postIpn(rig.service.url, body)).toEqual({ status, answer })
    }
    expect(await countRows(rig.database)).toEqual({})
    expect(await rig.control('GET', '/calls')).toEqual({ data: [] })
  })

  it('with one account the code may be missing or, as in a form, empty', async () => {
    const rig = await startHere({})
    const fields = { svc_Command: 'PAY', svc_TransactionID: 'T1' }
    const hash = computeSecureHash(fields, MERCHANT.secret, { prefix: 'svc', exclude: [] })
    const answer = await postIpn(rig.service.url, { ...fields, svc_SecureHash: hash })
    expect(answer.status).toBe(200)
    const form = toForm(signIpn({ svc_TransactionID: 'T2', svc_MerchantCode: '' }))
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await postIpn(rig.service.url, form, type)).status).toBe(200)
    const events = await listEvents(rig)
    expect(events).toMatchObject(['T1', 'T2'].map((id) => ({ merchant: 'UFLIYL', id })))
  })
})
