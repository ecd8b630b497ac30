import type { Guard } from './guard.ts'

export const SURPLUS: readonly Guard[] = [
  {
    file: 'src/refunds/surplus/choose-payment.ts',
    text: '.sort((a, b) => compareAmounts(b.most, a.most) ||',
    mutation: '.sort((a, b) => compareAmounts(a.most, b.most) ||',
    test: 'test/plays/surplus/request-surplus.test.ts',
    claim: 'of three payments, each surplus one is refunded by a request of its own',
    control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
  },
  {
    file: 'src/refunds/surplus/read-order-payments.ts',
    text: '\n    and upper(btrim(o.currency)) = upper(btrim(t.currency))',
    mutation: '',
    test: 'test/plays/surplus/request-surplus.test.ts',
    claim: 'of two transactions of one order one of another currency does not count',
    control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
  },
  {
    file: 'src/refunds/surplus/request-surplus.ts',
    text: '  const caps = await lockCaps(tx, access, ctx.config)',
    mutation:
      '  const caps = await lockCaps(tx, { ...access, refundMax: null, refundDailyMax: null }, ctx.config)',
    test: 'test/plays/surplus/request-surplus.test.ts',
    claim: 'a request respects the caps of its key',
    control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
  },
]
