import fc from 'fast-check'
import { computeSecureHash, joinSignedValues } from '../../src/gateway/signature.ts'
import { MERCHANT } from './service.ts'

export type Params = Readonly<Record<string, string>>

const UNSIGNED = ['TransAmount', 'ExtData']

/** Signs the members as the gateway signs a notification. */
export function sign(params: Params): Params {
  const exclude = params.svc_Command === 'REFUND' ? [] : UNSIGNED
  const hash = computeSecureHash(params, MERCHANT.secret, { prefix: 'svc', exclude })
  return { ...params, svc_SecureHash: hash }
}

/** The members of both notifications that are signed, in the order of the hash. */
const MEMBERS = {
  payment: [
    ...['Amount', 'Command', 'Currency', 'Locale', 'MerchantCode', 'MerchantTxnID', 'OrderID'],
    ...['OrderInfo', 'PayToken', 'ResponseCode', 'ResponseMsg', 'TransactionID', 'Version'],
  ],
  refund: [
    ...['Amount', 'Command', 'Fee', 'MerchantCode', 'OrderID', 'PaymentID', 'RequestID'],
    ...['ResponseCode', 'ResponseMsg', 'TransactionID', 'Version'],
  ],
}

/**
 * Cuts the signed text of a notification anew at every boundary between two neighbours: each number of characters
 * moves across, in both directions, or into a member between them that is listed and was empty; or a value moves
 * whole to a name that no table lists.
 */
export function recut(genuine: Params): Params[] {
  const signed = sign(genuine)
  const listed = MEMBERS[genuine.svc_Command === 'REFUND' ? 'refund' : 'payment']
  const unsigned = UNSIGNED.map((name) => `svc_${name}`)
  const names = Object.keys(genuine)
    .filter((name) => !unsigned.includes(name))
    .sort()
  const cuts: Params[] = []
  for (const [index, left] of names.entries()) {
    const right = names[index + 1]
    const text = genuine[left] ?? ''
    const between = `${left}x`
    if (right === undefined || between < right) {
      const { [left]: moved = '', ...rest } = signed
      cuts.push({ ...rest, [between]: moved })
    }
    if (right === undefined) continue
    const both = text + (genuine[right] ?? '')
    for (let at = 0; at <= both.length; at += 1) {
      if (at !== text.length)
        cuts.push({ ...signed, [left]: both.slice(0, at), [right]: both.slice(at) })
    }
    for (const empty of listed.map((name) => `svc_${name}`)) {
      if (empty <= left || empty >= right) continue
      for (let at = 0; at < both.length; at += 1) {
        const [from, to] = [Math.min(at, text.length), Math.max(at + 1, text.length)]
        const [before, middle, after] = [both.slice(0, from), both.slice(from, to), both.slice(to)]
        cuts.push({ ...signed, [left]: before, [empty]: middle, [right]: after })
      }
    }
  }
  return cuts
}

/** A signed request, and what stands before the merchant code in its text, cut into members in some ways. */
export type SignedRequest = { text: string; hash: string; heads: Record<Kind, Params[]> }
type Kind = keyof typeof MEMBERS

/** Cuts of the text of a request into members of a notification in documented form, with the account it belongs to. */
export function cutRequest(
  kind: Kind,
  { text, hash, heads }: SignedRequest,
  merchantCode: string,
): fc.Arbitrary<Params> {
  const names = MEMBERS[kind].slice(MEMBERS[kind].indexOf('MerchantCode') + 1)
  const id = kind === 'refund' ? 'RequestID' : 'TransactionID'
  const members = fc.shuffledSubarray(
    names.filter((name) => name !== id),
    { maxLength: 5 },
  )
  const places = fc.array(fc.nat(text.length), { minLength: 5, maxLength: 5 })
  return fc.tuple(fc.constantFrom(...heads[kind]), members, places).map(([head, more, cuts]) => {
    const start = Object.values(head).join('').length + merchantCode.length
    const chosen = [id, ...more].sort()
    const rest = text.slice(start)
    const ends = cuts
      .map((at) => at % (rest.length + 1))
      .slice(0, more.length)
      .sort((a, b) => a - b)
    const values = chosen.map((name, n) => [
      `svc_${name}`,
      rest.slice(ends[n - 1] ?? 0, ends[n] ?? rest.length),
    ])
    return {
      ...head,
      svc_MerchantCode: merchantCode,
      ...Object.fromEntries(values),
      svc_SecureHash: hash,
    }
  })
}

/** What comes before the merchant code of a request, cut into members that are documented. */
const QUERY_HEADS = {
  payment: [
    { svc_Command: 'QUERY_PT' },
    { svc_Amount: 'QUERY_PT' },
    { svc_Currency: 'QUERY_PT' },
    { svc_Locale: 'QUERY_PT' },
    { svc_Amount: 'QUERY', svc_Command: '_PT' },
  ],
  refund: [],
}
const REFUND_HEADS = {
  payment: [
    { svc_Amount: '10000REFUND' },
    { svc_Amount: '10000', svc_Currency: 'REFUND' },
    { svc_Amount: '10000', svc_Locale: 'REFUND' },
    { svc_Amount: '1', svc_Command: '0000REFUND' },
  ],
  refund: [{ svc_Amount: '10000', svc_Command: 'REFUND' }],
}

/** Signs a request for `cutRequest`. The request id is in no hash, unless `GATEWAY_REFUND_HASH_EXCLUDE` is `none`. */
export function signRequest(params: Readonly<Record<string, unknown>>): SignedRequest {
  const rule = { prefix: 'svc', exclude: ['RequestID'] }
  const hash = computeSecureHash(params, MERCHANT.secret, rule)
  const heads = params.svc_Command === 'QUERY_PT' ? QUERY_HEADS : REFUND_HEADS
  return { text: joinSignedValues(params, rule), hash, heads }
}
