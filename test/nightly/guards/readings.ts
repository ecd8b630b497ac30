import { type Guard, guards } from './guard.ts'

const cutFirst = (what: string) =>
  `a published notification beside each cut of it, the cut first ${what}: at most two ask, one is trusted, and the genuine one is kept`
const genuineFirst = (what: string) =>
  `a published notification beside each cut of it, the genuine one first ${what}: at most two ask, one is trusted, and the genuine one is kept`

export const READINGS: readonly Guard[] = [
  ...guards({ file: 'src/ipn/store.ts' }, [
    {
      text: ') as s order by merchant_code, transaction_id\n',
      mutation: ') as s order by merchant_code, transaction_id desc\n',
      test: 'test/races/wake.test.ts',
      claim: 'the intake locks rows in the order of their keys, so that batches never deadlock',
      control: 'the intake wakes the sync once per commit, however many notifications share it',
    },
    {
      text: 'greatest(now(), (select max(first_as_of) + interval',
      mutation: 'coalesce(now(), (select max(first_as_of) + interval',
      test: 'test/races/inbox.test.ts',
      claim:
        'a repeated refund notification holds nothing while it waits for its transaction, whose commit marks it handled',
      control: 'an idle inbox commits at once, one after the other',
    },
    {
      text: "      where (e.kind, ${listMeaning('e')}) is not",
      mutation: "      where true or (e.kind, ${listMeaning('e')}) is not",
      test: 'test/api/ipn/alternate-readings.test.ts',
      claim: cutFirst('a payment'),
      control: 'a body with the byte that separates bodies is stored, and so are its neighbours',
    },
    {
      text: 'readings.map((one) => stored.has(one.notification.textHash))',
      mutation: 'readings.map((one) => stored.size >= 0 || one.place > 0)',
      test: 'test/api/ipn/alternate-readings.test.ts',
      claim: cutFirst('a refund'),
      control: 'a body with the byte that separates bodies is stored, and so are its neighbours',
    },
    {
      text: "  if (!row) throw new Error('the database did not confirm that it stored the notifications')",
      mutation:
        '  if (!row) return new Set(readings.map(({ notification }) => notification.textHash))',
      test: 'test/races/inbox.test.ts',
      claim: 'a statement without a confirmation by the server does not count as stored',
      control: 'an idle inbox commits at once, one after the other',
    },
    {
      text: 'filter (where reading = 1)`',
      mutation: 'filter (where reading > 0)`',
      test: 'test/api/ipn/alternate-readings.test.ts',
      claim: genuineFirst('a payment'),
      control: 'a body with the byte that separates bodies is stored, and so are its neighbours',
    },
  ]),
  {
    file: 'src/ipn/readings.ts',
    text: '  if (documented && !taken.includes(1)) return 1\n',
    mutation: '  if (documented && same === null && !taken.includes(1)) return 1\n',
    test: 'test/unit/alternate-readings.test.ts',
    claim: 'a notification takes the first free place for it, or that of its own meaning',
    control:
      'a signed text is the same under the secret of before, with other unsigned members, and in other types',
  },
  {
    file: 'src/ipn/readings.ts',
    text: '  if (!taken.includes(2)) return 2\n',
    mutation: '  if (!taken.includes(2)) return 2\n  if (!taken.includes(3)) return 3\n',
    test: 'test/plays/recut.test.ts',
    claim:
      'one genuine refund notification reserves at most twice, however often its values are cut anew',
    control: 'an old failure with one unsigned member added does not throw a decided success back',
  },
  {
    file: 'src/ipn/readings.ts',
    text: '  return isOwn && !taken.includes(own) ? own : 0\n',
    mutation: '  return isOwn && taken.includes(0) ? own : 0\n',
    test: 'test/api/ipn/alternate-readings.test.ts',
    claim:
      'the notification of a refund of ours is kept beside any number of cuts, with its result',
    control: 'a body with the byte that separates bodies is stored, and so are its neighbours',
  },
  ...guards(
    {
      file: 'src/gateway/reading.ts',
      test: 'test/unit/alternate-readings.test.ts',
      control:
        'a signed text is the same under the secret of before, with other unsigned members, and in other types',
    },
    [
      {
        text: 'else if (!form.known.includes(member)) isListed = false',
        mutation: "else if (form.known.includes(member) && member === '') isListed = false",
        claim:
          'the documented form does not hold a member that no table lists, unless IPN_KNOWN_MEMBERS lists it',
      },
      {
        text: "  if (text.startsWith('QUERY_PT')) return false\n",
        mutation: '',
        claim:
          'the signed text of a request QUERY_PT, cut into the notification of a payment, is known as one',
      },
      {
        text: "  if (kind === 'payment') return !REFUND_START.test(text)\n",
        mutation: "  if (kind === 'payment') return true\n",
        claim:
          'the signed text of a request REFUND, cut into the notification of a payment, is known as one',
      },
      {
        text: "&& !text.slice(0, text.indexOf('REFUND')).includes('PAY')",
        mutation: "&& text.indexOf('REFUND') >= 0",
        claim:
          'the documented form does not hold a payment that a listed member hides in front of a refund',
      },
      {
        text: '  if (PAYMENT_ID.test(order)) return REQUEST\n',
        mutation: '  if (PAYMENT_ID.test(order)) return NO_REQUEST\n',
        claim:
          'the signed text of a request REFUND without receiver, cut into the notification of a refund, is known as one',
      },
      {
        text: '  if (present[at - 1]?.name !== idName ||',
        mutation: '  if (present[at - 1]?.name === `${idName}?` ||',
        claim: 'the result of a refund is not fixed by a value in front of the code',
      },
      {
        text: '/^\\d/.test(next)) return undefined',
        mutation: '/^\\d\\D\\d/.test(next)) return undefined',
        claim: 'the result of a refund is not fixed by a digit behind the code',
      },
      {
        text: "  if (code === REQUEST_VERSION && next === '') return undefined\n",
        mutation: '',
        claim:
          'the result of a refund is not the version, which stands alone behind the request id of a request',
      },
      {
        text: '  return isRefundText(joinTexts(present), joinTexts(own)) ? code : undefined\n',
        mutation:
          '  return isRefundText(joinTexts(present), joinTexts(own)) || code !== next ? code : undefined\n',
        claim: 'a text of the other kind is not documented as one of this',
      },
    ],
  ),
  ...guards({ file: 'src/sync/name-transaction.ts', control: 'nothing is named by nothing' }, [
    {
      text: 'const before = orderVerified ? row : NAMELESS',
      mutation: "const before = orderVerified && row.orderId === '' ? row : NAMELESS",
      test: 'test/unit/sync/name-transaction.test.ts',
      claim: 'what is missing of it is filled',
    },
    {
      text: 'filter(({ isOther }) => !isOther)',
      mutation: 'filter(({ id }) => id >= 0)',
      test: 'test/unit/sync/name-transaction.test.ts',
      claim: 'nor by a reading that is not trusted',
    },
    {
      text: 'trusted.filter(({ isVerified }) => isVerified)',
      mutation: 'trusted.filter(({ id }) => id >= 0)',
      test: 'test/unit/sync/name-transaction.test.ts',
      claim: 'not by one that did not verify',
    },
  ]),
]
