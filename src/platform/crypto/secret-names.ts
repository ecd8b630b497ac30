/** Replaces a credential. */
export const HIDDEN = '***'

const SECRET =
  /(?:token|secret|passw(?:or)?d|passphrase|passcode|otp|credential|signature|apikey|securehash)(?:value|id|no)?s?$/
/** The specification's token of a payer's card or account, in whatever name holds it. */
const PAY_TOKEN = /paytoken/
const AUTHORIZATION = /^authorization$/
/** As a word of its own: `shopping` ends with it as well. */
const PIN = /(?:^|[^a-z]|card|user)pin(?:code)?$/i

/** Credentials in a text of unknown form: a name, up to a few quotes, a separator, and the value. Linear in its length. */
const IN_TEXT =
  /((?:token|secret|passw(?:or)?d|passphrase|passcode|otp|credential|signature|apikey|securehash|authorization)[\w.-]{0,32}[\s"'\\]{0,6}[:=>][\s"'\\]{0,6}(?:bearer\s)?)[^\s"'\\&,;<>}]+/gi

/** Returns whether a member's name denotes a credential, as `payToken`, `cardToken` or `client_secret` do. */
export function isSecretName(name: string): boolean {
  const flat = name.toLowerCase().replace(/[^a-z]/g, '')
  return SECRET.test(flat) || PAY_TOKEN.test(flat) || AUTHORIZATION.test(flat) || PIN.test(name)
}

/** Replaces the values of what looks like credentials in a text. */
export function hideSecretsInText(text: string): string {
  return text.replace(IN_TEXT, `$1${HIDDEN}`)
}
