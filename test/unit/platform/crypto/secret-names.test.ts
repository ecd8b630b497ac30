import { describe, expect, it } from 'vitest'
import { hideSecretsInText, isSecretName } from '../../../../src/platform/crypto/secret-names.ts'

describe('the name of a member', () => {
  it.each([
    ...['svc_PayToken', 'brand_PayToken', 'token', 'cardToken', 'card_token_id', 'access-token'],
    ...['client_secret', 'password', 'svc_OTP', 'otpValue', 'apiKey', 'svc_SecureHash', 'pin'],
    ...['svc_PIN', 'cardPin', 'Authorization', 'signature', 'credentials', 'refreshTokens'],
  ])('%s denotes a credential', (name) => {
    expect(isSecretName(name)).toBe(true)
  })

  it.each([
    ...['id', 'status', 'amount', 'refundedAmount', 'paymentMethod', 'svc_TransactionID'],
    ...['svc_OrderInfo', 'tokenType', 'shopping', 'mapping', 'passengers', 'svc_Currency', 'keys'],
  ])('%s does not', (name) => {
    expect(isSecretName(name)).toBe(false)
  })
})

describe('in a text of unknown form', () => {
  it.each([
    ['{"svc_PayToken":"abc","id":"7"', '{"svc_PayToken":"***","id":"7"'],
    ['"{\\"payToken\\":\\"abc\\"}"', '"{\\"payToken\\":\\"***\\"}"'],
    ['svc_PayToken=abc&svc_OrderID=7', 'svc_PayToken=***&svc_OrderID=7'],
    ['<PayToken>abc</PayToken>', '<PayToken>***</PayToken>'],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer ***'],
    ['client_secret = abc', 'client_secret = ***'],
    ['the token has expired', 'the token has expired'],
  ])('%s becomes %s', (text, hidden) => {
    expect(hideSecretsInText(text)).toBe(hidden)
  })

  it('takes a time linear in its length', () => {
    const texts = ['token'.repeat(13_000), 'a'.repeat(65_000), `token${' "'.repeat(32_000)}`]
    const started = performance.now()
    for (const text of texts) expect(hideSecretsInText(text)).toBe(text)
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})
