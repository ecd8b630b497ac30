import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { DEMO_ACCOUNT } from '../../../src/config/accounts.ts'
import { estimateBits, findWeakSecrets } from '../../../src/config/conflicts.ts'

const random = (seed: number) => createHash('sha256').update(String(seed)).digest()
const SEEDS = Array.from({ length: 500 }, (_, seed) => random(seed))

it.each([
  ['a'.repeat(32), 8],
  ['ab'.repeat(32), 8],
  ['12345678901234567890123456789012', 60],
  ['secret', 20],
  ['demo-secret-of-the-sandbox', 60],
  ['Password1234', 60],
  [random(1).toString('hex').slice(0, 16), 64],
])('%s is taken for at most %i bits', (text, most) => {
  expect(estimateBits(text)).toBeLessThanOrEqual(most)
})

it('32 random hexadecimal digits, 24 of Base64 and 32 random bytes are hardly ever taken for weak', () => {
  const wrong = (write: (bytes: Buffer) => string) =>
    SEEDS.filter((bytes) => estimateBits(write(bytes)) < 128).length
  expect(wrong((bytes) => bytes.toString('hex').slice(0, 32))).toBeLessThan(SEEDS.length / 20)
  expect(wrong((bytes) => bytes.toString('base64url').slice(0, 24))).toBeLessThan(5)
  expect(wrong((bytes) => bytes.toString('hex'))).toBe(0)
})

it('weak signing secrets are named by their account, current and previous, and never shown', () => {
  const strong = random(2).toString('hex')
  const found = findWeakSecrets([
    { merchantCode: 'SHOP1', secret: strong, previousSecret: 'hunter2' },
    { merchantCode: 'SHOP2', secret: 'hunter2' },
    { merchantCode: 'SHOP3', secret: strong },
    DEMO_ACCOUNT,
  ])
  expect(found.map(({ merchantCode, which }) => [merchantCode, which])).toEqual([
    ['SHOP1', 'previousSecret'],
    ['SHOP2', 'secret'],
    ['DEMO', 'secret'],
  ])
  expect(JSON.stringify(found)).not.toContain('hunter2')
})
