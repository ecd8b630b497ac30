import { expect, it } from 'vitest'
import { maskCall } from '../../../src/refunds/receiver.ts'

const record = { command: 'REFUND', bodyHmac: { value: Buffer.alloc(0), keyId: '' } } as const
const call = (text: string) => ({
  outcome: { kind: 'rejected', code: '9', message: text } as const,
  record: { ...record, durationMs: 1, httpStatus: 200, received: JSON.stringify({ text }) },
})

const RECEIVER = Buffer.from(
  '{"accountName":"NGUYỄN?","accountNumber":"0123456789","swiftCode":"X"}',
)

it.each([
  ['0123 456 789', 'account 0123456789 is closed', 'account ••••  789 is closed'],
  ['0123456789', 'account 0123-456.789 is closed', 'account •••• 6789 is closed'],
  ['1129', 'account 1129, since 2026-11-29', 'account •••• 29, since 2026-11-29'],
  ['------', 'a - b ------ c', 'a - b •••• --- c'],
  ['0123456789', `to ${RECEIVER.toString('base64')}.`, 'to ***.'],
  ['0123456789', RECEIVER.toString('base64url'), '***'],
  ['0123456789', RECEIVER.toString('base64').slice(0, 72), '***'],
  ['0123456789', `a/${RECEIVER.toString('base64')}`, '***'],
  ['9876543210', RECEIVER.toString('base64'), RECEIVER.toString('base64')],
])('an account number %s is masked in %j', (accountNumber, text, masked) => {
  const { outcome, record } = maskCall(call(text), accountNumber)
  expect(outcome).toMatchObject({ message: masked })
  expect(JSON.parse(record.received ?? '')).toEqual({ text: masked })
})
