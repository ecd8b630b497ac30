import { type Guard, guards } from './guard.ts'

export const SIGNATURES: readonly Guard[] = [
  ...guards({ file: 'src/gateway/signature.ts', test: 'test/unit/gateway/signature.test.ts' }, [
    {
      text: "name !== 'SecureHash' && !exclude.includes(name)",
      mutation: "name !== 'SecureHash' && !exclude.some((one) => name.startsWith(one))",
      claim: 'what is hashed exclusions are whole names',
      control: 'known answers the published query has the published hash',
    },
    {
      text: '    .filter((name) => name.startsWith(start) && isSigned(name.slice(start.length)))',
      mutation:
        '    .filter((name) => name.startsWith(prefix) && isSigned(name.slice(start.length)))',
      claim:
        'what is hashed only parameters with the prefix and its underscore, the hash itself never',
      control: 'known answers the published query has the published hash',
    },
    {
      text: '    .sort()\n',
      mutation: '    .sort((a, b) => a.localeCompare(b))\n',
      claim:
        'what is hashed names are sorted by code unit: capitals first, no locale, no natural numbers',
      control: 'known answers the published query has the published hash',
    },
    {
      text: "  if (typeof given !== 'string' || !HEX_SHA256.test(given)) return 'wrong'",
      mutation: "  if (typeof given !== 'string' || !HEX_SHA256.test(given.trim())) return 'wrong'",
      claim:
        'verifying "df594d1e467bd327a30fa45ce259987718a68bd54cc67afe74d1e15e255182a4\\n" is a wrong hash',
      control: 'known answers the published query has the published hash',
    },
    {
      text: 'const given = Object.hasOwn(params, name) ? params[name] : undefined',
      mutation: 'const given = params[name]',
      claim: 'verifying a hash inherited from a prototype is none',
      control: 'known answers the published query has the published hash',
    },
    {
      text: "  if (signed === undefined) return 'unverifiable'\n  const claimed = Buffer.from(given, 'hex')\n  const text = joinTexts(signed)",
      mutation:
        "  const claimed = Buffer.from(given, 'hex')\n  const text = joinTexts(signed ?? [])",
      claim: 'verifying a nested object that is not excluded cannot be verified',
      control: 'known answers the published query has the published hash',
    },
    {
      text: "  if (typeof value === 'object' && !(value instanceof LosslessNumber)) {",
      mutation: "  void LosslessNumber\n  if (typeof value === 'object' && name === '') {",
      claim: 'what is hashed a nested object is refused by name, unless it is excluded',
      control: 'known answers the published query has the published hash',
    },
  ]),
  {
    file: 'src/gateway/notification.ts',
    text: 'const secrets = previousSecret ? [secret, previousSecret] : [secret]',
    mutation: 'const secrets = previousSecret ? [previousSecret, secret].slice(0, 1) : [secret]',
    test: 'test/api/ipn/access.test.ts',
    claim: 'the signature rule the previous secret is still accepted, an older one is not',
    control: 'the signature rule warns at start unless it is required',
  },
  ...guards({ file: 'src/gateway/parse-body.ts' }, [
    {
      text: 'if (hasManyValues(body, format)) return',
      mutation: "if (hasManyValues(body, format) && body === '') return",
      test: 'test/unit/refused-notifications.test.ts',
      claim: 'a body that cannot be parsed of more than 1000 values, in a list',
      control: 'a body that cannot be parsed of a thousand values at any depth is read',
    },
    {
      text: "    else if (isInText) at += sign === '\\\\' ? 1 : 0\n",
      mutation: "    else if (isInText && sign === '\\\\') at += 1\n",
      test: 'test/unit/refused-notifications.test.ts',
      claim: 'a body that cannot be parsed of few values is read, however often , stands in a text',
      control: 'a body that cannot be parsed of more than 1000 values, in a list',
    },
    {
      text: "    else if (isInText) at += sign === '\\\\' ? 1 : 0\n",
      mutation: "    else if (isInText) at += sign === '' ? 1 : 0\n",
      test: 'test/unit/refused-notifications.test.ts',
      claim: 'a body that cannot be parsed of more than 1000 values, behind a text',
      control: 'a body that cannot be parsed of more than 1000 values, in a list',
    },
    {
      text: 'return count > MAX_MEMBERS ?',
      mutation: 'return count > 10 * MAX_MEMBERS ?',
      test: 'test/api/ipn/http.test.ts',
      claim: 'methods switched on, GET takes the query string, and HEAD and PUT are still refused',
      control: 'methods DELETE is 405 with Allow: POST',
    },
  ]),
  ...guards({ file: 'src/gateway/notification.ts', test: 'test/api/ipn/access.test.ts' }, [
    {
      text: "verdict === 'verified' || (rule === 'optional' && verdict === 'missing')",
      mutation: "verdict === 'verified' || rule === 'optional'",
      claim: 'the signature rule optional: right, missing and wrong',
      control: 'the signature rule off: right, missing and wrong',
    },
    {
      text: "if (rule !== 'off' && !isAccepted)",
      mutation: "if (rule === 'optional' && !isAccepted)",
      claim: 'the signature rule required: right, missing and wrong',
      control: 'the signature rule optional: right, missing and wrong',
    },
    {
      text: '  if (only && !another) known.set(undefined, only)',
      mutation: '  if (only) known.set(undefined, another ?? only)',
      claim:
        'several accounts no code, an empty one, an unknown one and the hash of another merchant are refused',
      control: 'several accounts with one account the code may be missing or, as in a form, empty',
    },
    {
      text: "const message = kind === 'refund' ? 'refund-ipn' : 'ipn'",
      mutation: "const message = kind === 'refund' ? 'ipn' : 'ipn'",
      claim:
        'the signature rule with {} exclusions apply to payment notifications, never to refund notifications',
      control:
        'the signature rule with {"IPN_HASH_EXCLUDE":"none"} exclusions apply to payment notifications, never to refund notifications',
    },
  ]),
  {
    file: 'src/gateway/notification.ts',
    text: '    if (exclude.includes(member)) return undefined\n',
    mutation: "    if (exclude.includes(member) && member === '') return undefined\n",
    test: 'test/unit/refused-notifications.test.ts',
    claim:
      'a member that the settings exclude from the hash is not read, whatever anybody wrote there; what is signed still is',
    control: 'a body that cannot be parsed of a thousand values at any depth is read',
  },
  {
    file: 'src/gateway/reading.ts',
    text: "let isListed = !exclude.includes('TransactionID')",
    mutation: "let isListed = !exclude.includes('Transaction')",
    test: 'test/unit/refused-notifications.test.ts',
    claim:
      'a member that the settings exclude from the hash leads to a query alone if it is the transaction id, which may be any other',
    control: 'a body that cannot be parsed of a thousand values at any depth is read',
  },
]
