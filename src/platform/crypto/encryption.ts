import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

/** Encryption of stored values, under one key from the settings. */
export type Encryption = {
  /** Encrypts with AES-256-GCM. `context` is authenticated too, so a ciphertext cannot be moved to another row. */
  encrypt(text: string, context: string): Buffer
  /** @throws Error when the key, the context or the bytes differ from those of the encryption */
  decrypt(ciphertext: Buffer, context: string): string
  /** Returns an HMAC-SHA-256 under a separate key: equal texts compare equal, and no text can be recovered. */
  fingerprint(text: string): Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** @param key 32 bytes in Base64 */
export function createEncryption(key: string): Encryption {
  const root = Buffer.from(key, 'base64')
  // Existing data depends on these purpose strings.
  const encryptionKey = deriveKey(root, 'seal')
  const fingerprintKey = deriveKey(root, 'fingerprint')
  return {
    encrypt(text, context) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', encryptionKey, nonce).setAAD(
        Buffer.from(context),
      )
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), body])
    },
    decrypt(ciphertext, context) {
      const nonce = ciphertext.subarray(0, NONCE_BYTES)
      const tag = ciphertext.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', encryptionKey, nonce, {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(context))
        .setAuthTag(tag)
      const body = ciphertext.subarray(NONCE_BYTES + TAG_BYTES)
      return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
    },
    fingerprint: (text) => createHmac('sha256', fingerprintKey).update(text).digest(),
  }
}

function deriveKey(root: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', root, '', `ipn-processor ${purpose}`, 32))
}
