import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import {
  createDataKey,
  createEncryption,
  createKeyWrap,
} from '../../../../src/platform/crypto/encryption.ts'

const keys = [createDataKey('seal'), createDataKey('fingerprint')]
const encryption = createEncryption(() => keys)
const place = { column: 'refunds.receiver', row: 'R-1' } as const

it('a ciphertext is read in its own column and row only', () => {
  const sealed = encryption.encrypt('text', place)
  expect(encryption.decrypt(sealed, place)).toBe('text')
  expect(() => encryption.decrypt(sealed, { ...place, row: 'R-2' })).toThrow()
  expect(() => encryption.decrypt(sealed, { ...place, column: 'refunds.receiver_shown' })).toThrow()
})

it('a ciphertext names its key, and no changed byte of it passes', () => {
  const sealed = encryption.encrypt('text', place)
  expect(sealed.subarray(0, 12).toString('hex')).toContain(keys[0]?.id)
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => encryption.decrypt(changed, place)).toThrow()
  }
})

it('a ciphertext whose key is not there, or that names none, is refused', () => {
  const others = [createDataKey('seal')]
  const other = createEncryption(() => others)
  expect(() => encryption.decrypt(other.encrypt('text', place), place)).toThrow('not there')
  expect(() => encryption.decrypt(Buffer.alloc(60, 3), place)).toThrow('not there')
})

it('a fingerprint says with which key it was made; without that key nobody can compare', () => {
  const { value, keyId } = encryption.fingerprint('text')
  expect(encryption.checkFingerprint('text', { value, keyId })).toBe('same')
  expect(encryption.checkFingerprint('other', { value, keyId })).toBe('different')
  expect(encryption.checkFingerprint('text', { value, keyId: 'other' })).toBe('unknown')
})

it('a fresh key seals from when it is in use, and the older ones go on opening', () => {
  const [first, second] = [createDataKey('seal'), createDataKey('seal')]
  const sealed = createEncryption(() => [first]).encrypt('text', place)
  const namedIn = (activeAt: number) => {
    const ring = createEncryption(() => [{ ...second, activeAt }, first])
    expect(ring.decrypt(sealed, place)).toBe('text')
    return ring.encrypt('text', place).subarray(4, 12).toString('hex')
  }
  expect(namedIn(performance.now() + 60_000)).toBe(first.id)
  expect(namedIn(performance.now())).toBe(second.id)
})

it('a data key is unwrapped with its root key, for its own purpose', () => {
  const root = randomBytes(32)
  const [key] = keys
  if (!key) throw new Error('no key')
  const wrapped = createKeyWrap(root).wrap(key)
  expect(createKeyWrap(root).unwrap(wrapped, key)).toEqual(key.key)
  expect(createKeyWrap(randomBytes(32)).unwrap(wrapped, key)).toBeUndefined()
  expect(() => createKeyWrap(root).unwrap(wrapped, { ...key, purpose: 'fingerprint' })).toThrow()
})
