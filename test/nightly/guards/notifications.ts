import { type Guard, guards } from './guard.ts'

export const NOTIFICATIONS: readonly Guard[] = [
  ...guards({ file: 'src/gateway/parse-body.ts', test: 'test/unit/gateway/parse-params.test.ts' }, [
    {
      text: '    const isJson = tryParse(() => JSON.parse(text)) !== undefined\n',
      mutation: '    const isJson = tryParse(() => JSON.parse(text)) === tryParse\n',
      claim: '{"a":"1","a":"2"} is refused',
      control: '{"a":"1","a":"2" is refused',
    },
    {
      text: "  return Object.hasOwn(value, '__proto__') ? PROTO : { params: { ...value } }",
      mutation: '  return { params: { ...value } }',
      claim: '{"__proto__":"1"} is refused',
      control:
        'the fast way through a flat object reads what the exact parser reads, or leaves it to that',
    },
    {
      text: '  if (JSON.stringify(params) !== text) return undefined\n',
      mutation: '',
      claim: '{"a":"1","a":"2"} is refused',
      control: '{"__proto__":"1"} is refused',
    },
  ]),
  {
    file: 'src/gateway/parse-body.ts',
    text: '  if (Object.keys(params).length !== entries.length) return',
    mutation: '  if (Object.keys(params).length > entries.length) return',
    test: 'test/process/cli/run-cli.test.ts',
    claim: 'a command that cannot run prints one line, with exit code 2 a name twice in a form',
    control: 'a command that cannot run prints one line, with exit code 2 no object',
  },
  {
    file: 'src/ipn/readings.ts',
    text: 'if (!same.notification.documented) same.notification = notification',
    mutation: 'if (same.items.length === 0) same.notification = notification',
    test: 'test/api/ipn/alternate-readings.test.ts',
    claim:
      'a published notification beside each cut of it, both in one batch a payment: at most two ask, one is trusted, and the genuine one is kept',
    control: 'a body with the byte that separates bodies is stored, and so are its neighbours',
  },
  ...guards(
    { file: 'src/platform/crypto/masking.ts', test: 'test/unit/platform/crypto/masking.test.ts' },
    [
      {
        text: "      for (const at of places.slice(from + 6, to - 4)) chars[at] = '*'",
        mutation: "      for (const at of places.slice(from + 8, to - 4)) chars[at] = '*'",
        claim: 'a card number in "REF378282246310005X" is masked',
        control: 'a card number in "03101109-4749-4102-8209-112177812181" is masked',
      },
      {
        text: '      const own = kind ?? classifyName(name, parent)',
        mutation:
          "      const own = kind ?? (parent === '' ? classifyName(name, parent) : undefined)",
        claim: 'a CVV under the name CVC is hidden: 123',
        control: 'a card number in 4111111111111111.00 is masked',
      },
      {
        text: "  if (kind === 'cvv') return hideCvv(value)\n",
        mutation: '  void hideCvv\n',
        claim: 'a CVV under the name cardCVV is hidden: "1234"',
        control: 'a card number in "4111-1111-1111-1111" is masked',
      },
      {
        text: '  if (depth >= MAX_DEPTH) return HIDDEN\n',
        mutation: '  void MAX_DEPTH\n',
        claim: 'a value nested too deeply is hidden without inspection',
        control: 'a card number in "order 12 4111 1111 1111 1111" is masked',
      },
      {
        text: '      return [maskCardText(name), maskValue(member, at)]',
        mutation: '      return [name, maskValue(member, at)]',
        claim: 'a card number in {"a":[{"b":{"4111111111111111":[4111111111111111]}}]} is masked',
        control: 'a card number in "pay 4111 1111 1111 1111 now" is masked',
      },
      {
        text: '  return sum % 10 === 0\n',
        mutation: '  return sum % 10 === 10\n',
        claim: 'a card number in "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1" is masked',
        control:
          'a card number under the name CARDNO is masked without the Luhn check: "1234567890123456"',
      },
    ],
  ),
  {
    file: 'src/platform/crypto/masking.ts',
    text: '  /paytoken|',
    mutation: '  /^paytoken$|',
    test: 'test/unit/gateway/mask-notification.test.ts',
    claim: 'a token with more in its name is not stored, in JSON and in a form',
    control: 'a token without the prefix is not stored, in JSON and in a form',
  },
  {
    file: 'src/sandbox/notify.ts',
    text: 'if (isUnheard) return false',
    mutation: 'if (isUnheard) return true',
    test: 'test/api/sandbox/ipn.test.ts',
    claim:
      'delivery acceptThenReset delivers a notification, and once more, as if its acknowledgement were lost',
    control: 'delivery another fault drops a notification for good, a delay only postpones it',
  },
]
