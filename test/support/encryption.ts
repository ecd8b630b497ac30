import { createDataKey, createEncryption } from '../../src/platform/crypto/encryption.ts'

/** Encryption with keys that no database has. */
export function makeEncryption() {
  const keys = [createDataKey('seal'), createDataKey('fingerprint')]
  return createEncryption(() => keys)
}
