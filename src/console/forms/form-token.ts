import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Makes a form token of a session. Each differs, and none needs to be stored: it proves that its maker knew the session. */
export function makeFormToken(sessionToken: string): string {
  const nonce = randomBytes(12).toString('base64url')
  return `${nonce}.${sign(sessionToken, nonce).toString('base64url')}`
}

/** Whether a form token was made for this session. */
export function checkFormToken(sessionToken: string, formToken: string): boolean {
  const [nonce = '', mac = ''] = formToken.split('.')
  const given = Buffer.from(mac, 'base64url')
  const expected = sign(sessionToken, nonce)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function sign(sessionToken: string, nonce: string): Buffer {
  return createHmac('sha256', sessionToken).update(`form token ${nonce}`).digest()
}
