import { type Guard, guards } from './guard.ts'

export const AMOUNTS: readonly Guard[] = [
  ...guards({ file: 'examples/order-system/shop.ts', test: 'test/project/example.test.ts' }, [
    {
      text: 'if (!final.success) return c.body(null, 204)',
      mutation: 'if (!final.success) return c.body(null, 422)',
      claim: 'the endpoint of the shop takes the test event of the service',
      control: 'the shop takes no webhook that it has no secret for',
    },
    {
      text: '    stored.status = readStatus(stored, transaction)\n    recordRefund',
      mutation: '    stored.status = transaction.state\n    recordRefund',
      claim:
        'the shop does not take an order for paid of which too little was paid, also once its refund failed',
      control: 'the shop takes no webhook that it has no secret for',
    },
  ]),
  ...guards({ file: 'src/money.ts', test: 'test/unit/money.test.ts' }, [
    {
      text: "return difference.lt(0) ? '0' : difference",
      mutation: "return difference.lt(-1e9) ? '0' : difference",
      claim: 'calculating a difference is never below 0',
      control: 'calculating the empty sum is 0',
    },
    {
      text: '/^(?:0|[1-9]\\d{0,17})(?:\\.\\d{1,4})?$/',
      mutation: '/^(?:0|[1-9]\\d{0,18})(?:\\.\\d{1,4})?$/',
      claim: 'reading an amount "1000000000000000000" is no amount',
      control: 'reading an amount 0 is kept as it was written',
    },
  ]),
  {
    file: 'src/console/refund-fields.ts',
    text: "parseRefundAmount(readWrittenAmount(written) ?? '')",
    mutation: "parseRefundAmount(amount) ?? parseRefundAmount(readWrittenAmount(written) ?? '')",
    test: 'test/unit/console/refund-form/fields.test.ts',
    claim: 'the amount of a part "150.000" is read as people write it',
    control: 'the amount of a part "37,000" is read as people write it',
  },
  {
    file: 'src/console/refund-fields.ts',
    text: 'else if ((findDecimals(currency) ?? 0) > 2 &&',
    mutation: 'else if ((findDecimals(currency) ?? 0) > 3 &&',
    test: 'test/unit/console/refund-form/fields.test.ts',
    claim:
      'the amount of a part "1.500" is refused in a currency with three decimals, where it may be a thousand or not',
    control: 'the amount of a part "1.500" is read as people write it',
  },
  ...guards({ file: 'src/money.ts', test: 'test/unit/money.test.ts' }, [
    {
      text: 'needed > own ? 2 : own))',
      mutation: 'needed > own ? 2 : own + 3))',
      claim: 'an amount is shown 150.000 of VND with 0 decimals',
      control: 'an amount is shown 10.5001 of USD with 4 decimals',
    },
    {
      text: '\\s*(?:[A-Za-z]{3}|[₫đĐ])$/gu',
      mutation: '\\s*(?:[A-Z]{3}|₫)$/gu',
      claim: 'reading an amount as people write it 150.000đ is 150000',
      control: 'reading an amount as people write it 37,000 VND is 37000',
    },
  ]),
  {
    file: 'src/console/refund-fields.ts',
    text: 'named !== currency.toUpperCase()',
    mutation: 'named !== named.toUpperCase()',
    test: 'test/unit/console/refund-form/fields.test.ts',
    claim: 'the amount of a part "150 USD" is refused where the payment is in another currency',
    control: 'the amount of a part "150,000 vnd" is read as people write it',
  },
  {
    file: 'src/money.ts',
    text: "currency?.trim().toUpperCase() ?? ''",
    mutation: "currency?.trim() ?? ''",
    test: 'test/api/refunds/request/bounds.test.ts',
    claim:
      'the least amount of a refund is the same however the currency is spelt, and so are its decimals',
    control:
      'the least amount of a refund is the smallest unit of the currency, and 0.01 of an unknown one',
  },
  {
    file: 'src/refunds/request-rules.ts',
    text: 'if (whole.some((all) => compareAmounts(amount, all) === 0)) return',
    mutation: 'if (whole.some((all) => compareAmounts(amount, all) < 0)) return',
    test: 'test/api/refunds/request/bounds.test.ts',
    claim:
      'the least amount of a refund is no reason to refuse all that is left by its amount, which is sent without one',
    control:
      'the least amount of a refund is the smallest unit of the currency, and 0.01 of an unknown one',
  },
]
