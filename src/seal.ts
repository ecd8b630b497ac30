import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

/** What is stored encrypted, under one key from the settings. */
export type Sealer = {
  /** AES-256-GCM; `context` is bound to the text, so that a sealed value cannot be moved to another row. */
  seal(text: string, context: string): Buffer
  /** @throws when the key, the context or the bytes are not those it was sealed with */
  open(sealed: Buffer, context: string): string
  /** HMAC-SHA-256 under a key of its own: equal texts can be recognised, nothing can be read back. */
  fingerprint(text: string): Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** @param key 32 bytes in Base64 */
export function createSealer(key: string): Sealer {
  const root = Buffer.from(key, 'base64')
  const sealingKey = deriveKey(root, 'seal')
  const fingerprintKey = deriveKey(root, 'fingerprint')
  return {
    seal(text, context) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), body])
    },
    open(sealed, context) {
      const nonce = sealed.subarray(0, NONCE_BYTES)
      const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', sealingKey, nonce, {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(context))
        .setAuthTag(tag)
      const body = sealed.subarray(NONCE_BYTES + TAG_BYTES)
      return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
    },
    fingerprint: (text) => createHmac('sha256', fingerprintKey).update(text).digest(),
  }
}

function deriveKey(root: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', root, '', `ipn-processor ${purpose}`, 32))
}
