import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { isLosslessNumber, parse } from 'lossless-json'
import { MERCHANT, signIpn, toForm } from '../../support/service.ts'
import { mutateOneOf, ODD, UNFIT } from './mutate.ts'
import { type Sent, writeHeader } from './send.ts'

const PAID = {
  svc_TransactionID: 'T-1',
  svc_PaymentID: 'P-1',
  svc_OrderID: 'ORDER 1',
  svc_MerchantTxnID: 'M-1',
  svc_Currency: 'VND',
  svc_Amount: '10000.50',
  svc_ResponseCode: 0,
  svc_ResponseMsg: 'Thành công',
}
const REFUNDED = {
  svc_Command: 'REFUND',
  svc_RequestID: '1cf2bd0e-3a0e-4d5b-8a53-6f3f6c1f0a11',
  svc_TransactionID: 'R-1',
  svc_PaymentID: 'P-1',
  svc_Amount: 10,
  svc_ResponseCode: 0,
  svc_ResponseMsg: 'ok',
}
const RECORDED = [signIpn(PAID), signIpn(REFUNDED, { exclude: [] })]

const text = fc.oneof(
  fc.constantFrom(...ODD),
  fc.string({ unit: 'binary', maxLength: 140 }),
  fc.constantFrom(...UNFIT),
)

/** Signed as it should be, with any value in any place: it comes as far as the database lets it. */
const signed = fc
  .tuple(
    fc.constantFrom<Record<string, string | number>>(PAID, REFUNDED),
    fc.dictionary(
      fc.constantFrom(...Object.keys({ ...PAID, ...REFUNDED }), 'svc_MerchantCode', 'svc_ExtData'),
      fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger()),
      { maxKeys: 3 },
    ),
  )
  .map(([fields, more]) => {
    const all = { ...fields, ...more }
    return signIpn(all, all.svc_Command === 'REFUND' ? { exclude: [] } : {})
  })

const json = fc.oneof(
  mutateOneOf(RECORDED.map((one) => JSON.stringify(one))),
  signed.map((one) => Buffer.from(JSON.stringify(one))),
)
const form = fc.oneof(
  mutateOneOf(RECORDED.map(toForm)),
  signed.map((one) => {
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(one)) form.append(name, String(value))
    return Buffer.from(form.toString())
  }),
)

const type = (...right: string[]) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...right) },
    fc.constantFrom('text/plain', '', 'application/json;', 'APPLICATION/x+JSON; charset=utf-16'),
    fc.string({ maxLength: 30 }).map(writeHeader),
  )

const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom('::ffff:192.0.2.1', 'fe80::1%eth0', '192.0.2.1, ,', '0:0:0:0:0:ffff:1.2.3.4'),
  fc.string({ maxLength: 60 }).map(writeHeader),
)
const headers = fc.record(
  {
    'x-forwarded-for': address,
    'user-agent': fc.string({ unit: 'binary', maxLength: 600 }).map(writeHeader),
    'x-request-id': fc.string({ maxLength: 300 }).map(writeHeader),
  },
  { requiredKeys: [] },
)

/** A notification by any way that `/ipn` takes, and by some that it does not. */
export const notification: fc.Arbitrary<Sent> = fc
  .tuple(
    headers,
    fc.oneof(
      fc.record({ method: post(), body: json, type: type('application/json') }),
      fc.record({ method: post(), body: form, type: type('application/x-www-form-urlencoded') }),
      fc.record({ method: fc.constant('GET'), body: form, type: fc.constant('') }),
    ),
  )
  .map(([more, { method, body, type }]) => {
    const given = { ...more, ...(type === '' ? {} : { 'content-type': type }) }
    if (method !== 'GET') return { method, path: '/ipn', headers: given, body }
    return {
      method,
      path: `/ipn?${body.toString('latin1').slice(0, 8_000)}`,
      headers: given,
      body: undefined,
    }
  })

function post() {
  return fc.oneof(
    { weight: 30, arbitrary: fc.constant('POST') },
    fc.constantFrom('PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'),
  )
}

/** Whether the hash of a stored body is right, by the rule of specification 5.2 written down once more. */
export function isSigned(body: string): boolean {
  const params = new Map(body.trimStart().startsWith('{') ? readJson(body) : readForm(body))
  const left = ['svc_SecureHash']
  if (params.get('svc_Command') !== 'REFUND') left.push('svc_TransAmount', 'svc_ExtData')
  const names = [...params.keys()].filter((name) => name.startsWith('svc_') && !left.includes(name))
  const values = names.sort().map((name) => params.get(name))
  const hash = createHash('sha256').update(values.join('') + MERCHANT.secret)
  return hash.digest('hex') === params.get('svc_SecureHash')?.toLowerCase()
}

const readForm = (body: string) => [...new URLSearchParams(body)]

function readJson(body: string): [string, string][] {
  const given: unknown = parse(body)
  if (typeof given !== 'object' || given === null) return []
  return Object.entries(given).map(([name, value]) => [name, write(value)])
}

function write(value: unknown): string {
  if (value === null) return ''
  if (isLosslessNumber(value)) return value.value
  return Array.isArray(value) ? value.map(write).join(',') : String(value)
}
