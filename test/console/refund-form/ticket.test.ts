import { describe, expect, it } from 'vitest'
import {
  createTicket,
  readPreview,
  readTicket,
  signPreview,
  signTicket,
} from '../../../src/console/refund-form/ticket.ts'
import { createDataKey, createEncryption } from '../../../src/platform/crypto/encryption.ts'
import { RECEIVER } from '../../support/ask.ts'

const keys = [createDataKey('fingerprint')]
const signer = createEncryption(() => keys)
const owner = { personId: 'p-1', path: '/console/payments/M/P-1/refund' }
const ticket = createTicket({ version: 'T-1@3', left: '100', lastRefundId: null })
const token = signTicket(signer, owner, ticket)

/** Changes one character of a text to another of its alphabet. */
const changeAt = (text: string, at: number) =>
  text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)

describe('the ticket of a form', () => {
  it('comes back as it was signed', () => {
    expect(readTicket(signer, owner, token)).toEqual(ticket)
  })

  it('has a key of its own each time', () => {
    const keys = Array.from({ length: 100 }, () => createTicket(ticket).key)
    expect(new Set(keys).size).toBe(100)
    for (const key of keys) expect(key).toMatch(/^console-[\w-]{24}$/)
  })

  it.each([
    ['another person', { personId: 'p-2' }],
    ['another payment', { path: '/console/payments/M/P-2/refund' }],
    ['another account', { path: '/console/payments/N/P-1/refund' }],
    ['another kind of form', { path: '/console/transactions/M/P-1/surplus' }],
  ])('is no ticket of %s', (_, more) => {
    expect(readTicket(signer, { ...owner, ...more }, token)).toBeUndefined()
  })

  it('is none once a character of it was changed', () => {
    const unchanged = Array.from(token, (_, at) => changeAt(token, at)).filter(
      (changed) => changed !== token && readTicket(signer, owner, changed) !== undefined,
    )
    // The last character of a Base64 text has bits that mean nothing.
    expect(unchanged.every((one) => one.slice(0, -1) === token.slice(0, -1))).toBe(true)
  })

  it.each(['', '.', '..', 'a.b.c', `${token}.x`, `x${token}`, token.slice(0, -1), 'é'.repeat(9)])(
    'is none in %j',
    (text) => {
      expect(readTicket(signer, owner, text)).toBeUndefined()
    },
  )

  it('is none when it was signed with a key that is gone, and still one beside a newer key', () => {
    const fresh = { ...createDataKey('fingerprint'), activeAt: 1 }
    const other = createEncryption(() => [fresh])
    expect(readTicket(other, owner, token)).toBeUndefined()
    const rotated = createEncryption(() => [...keys, fresh])
    expect(readTicket(rotated, owner, token)).toEqual(ticket)
  })
})

describe('the preview of a form', () => {
  const refund = { amount: '30', receiver: RECEIVER, reason: 'Paid twice: at the till' }
  const previewed = signPreview(signer, token, refund)

  it('comes back as it was signed, with and without a receiver', () => {
    expect(readPreview(signer, token, previewed)).toEqual(refund)
    const plain = { ...refund, receiver: undefined }
    expect(readPreview(signer, token, signPreview(signer, token, plain))).toEqual(plain)
  })

  it('belongs to its ticket only, and a ticket is no preview', () => {
    const other = signTicket(signer, owner, createTicket(ticket))
    expect(readPreview(signer, other, previewed)).toBeUndefined()
    expect(readPreview(signer, token, token)).toBeUndefined()
    expect(readTicket(signer, owner, previewed)).toBeUndefined()
  })

  it('of the longest receiver and reason can be confirmed', () => {
    const long = '漢'.repeat(140)
    const receiver = { accountName: long, accountNumber: long, swiftCode: long }
    const whole = { amount: '9'.repeat(18), receiver, reason: '漢'.repeat(500) }
    expect(readPreview(signer, token, signPreview(signer, token, whole))).toEqual(whole)
  })
})
