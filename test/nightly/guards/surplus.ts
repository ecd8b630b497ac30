import { type Guard, guards } from './guard.ts'

export const SURPLUS: readonly Guard[] = [
  {
    file: 'src/refunds/request-facts.ts',
    text: 'clock_timestamp()::text as now',
    mutation: 'now()::text as now',
    test: 'test/plays/surplus/send-surplus.test.ts',
    claim:
      'before a surplus refund is sent a refund that was requested while its own request waited for a lock counts as an earlier one',
    control: 'at the same time copies of one request are one refund',
  },
  ...guards({ test: 'test/plays/surplus/request-surplus.test.ts' }, [
    {
      file: 'src/refunds/surplus.ts',
      text: '.sort((a, b) => compareAmounts(b.most, a.most) ||',
      mutation: '.sort((a, b) => compareAmounts(a.most, b.most) ||',
      claim: 'of three payments, each surplus one is refunded by a request of its own',
      control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
    },
    {
      file: 'src/refunds/order-surplus.ts',
      text: '\n    and upper(btrim(o.currency)) = upper(btrim(t.currency))',
      mutation: '',
      claim: 'of two transactions of one order one of another currency does not count',
      control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
    },
    {
      file: 'src/refunds/order-surplus.ts',
      text: 'having max(r.requested_at) > clock_timestamp()',
      mutation: 'having max(r.requested_at) > clock_timestamp() and false',
      claim:
        'of two transactions of one order none is refunded while a refund of the other is dated later than now: it would count as requested later',
      control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
    },
    {
      file: 'src/refunds/surplus.ts',
      text: 'retryAfterS: toSeconds(aheadMs)',
      mutation: 'retryAfterS: toSeconds(0 * aheadMs)',
      claim:
        'of two transactions of one order none is refunded while a refund of the other is dated later than now: it would count as requested later',
      control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
    },
    {
      file: 'src/refunds/surplus.ts',
      text: '  return { access, refundId, ...chosen',
      mutation:
        '  return { access: { ...access, refundMax: null, refundDailyMax: null }, refundId, ...chosen',
      claim: 'a request respects the caps of its key',
      control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
    },
    {
      file: 'src/refunds/surplus.ts',
      text: '.filter(({ unrecognised }) => !unrecognised)',
      mutation: '.filter(({ unrecognised }) => !unrecognised || unrecognised)',
      claim:
        'of two payments of one transaction one whose status nobody knows any more counts as a success, and is not the one refunded',
      control: 'of three payments, each surplus one is refunded by a request of its own',
    },
  ]),
  {
    file: 'src/refunds/surplus.ts',
    text: '  await lockOrder(tx, key)\n',
    mutation: "  if (amount === '') await lockOrder(tx, key)\n",
    test: 'test/plays/surplus/send-surplus.test.ts',
    claim: 'at the same time two surplus refunds of the two transactions of an order are one',
    control:
      'before a surplus refund is sent a refund at the portal of what was paid twice makes it fail',
  },
  {
    file: 'src/refunds/order-surplus.ts',
    text: 'const ofOrder = expected.gt(paid) ? paid : expected',
    mutation: 'const ofOrder = paid.lt(0) ? paid : expected',
    test: 'test/unit/refunds/surplus/count-surplus.test.ts',
    claim:
      'one success of an order is what was paid, when the order is paid in part: nothing is missing from it',
    control: 'one success of an order is the amount of the order, when payments are parts of it',
  },
  {
    file: 'src/refunds/order-surplus.ts',
    text: 'const success = ofOrder.gt(largest) ? ofOrder : largest',
    mutation: 'const success = ofOrder.gt(largest) ? largest : largest',
    test: 'test/plays/surplus/request-surplus.test.ts',
    claim: 'of two payments of one transaction none is refunded that is a part of the order',
    control: 'of three payments, each surplus one is refunded by a request of its own',
  },
  {
    file: 'src/refunds/measure.ts',
    text: 'refundedNow: countedRefunded ?? refundedNow,',
    mutation: 'refundedNow: countedRefunded === null ? refundedNow : refundedNow,',
    test: 'test/plays/surplus/send-surplus.test.ts',
    claim:
      'before a surplus refund is sent a stale answer that shows such a refund no more does not bring the surplus back',
    control: 'at the same time copies of one request are one refund',
  },
  ...guards(
    {
      file: 'src/refunds/order-surplus.ts',
      test: 'test/plays/surplus/send-surplus.test.ts',
      control: 'at the same time copies of one request are one refund',
    },
    [
      {
        text: 'payments.every(({ confirmed }) => confirmed)',
        mutation: 'payments.every(({ confirmed }) => confirmed || !confirmed)',
        claim:
          'before a surplus refund is sent another transaction of the order is asked about, and then it is sent',
      },
      {
        text: 'payments.as_of > (select since from asked)',
        mutation: 'payments.as_of is not null',
        claim:
          'before a surplus refund is sent another transaction of the order is asked about, and then it is sent',
      },
      {
        text: 'and payments.as_of <= clock_timestamp()',
        mutation: 'and payments.as_of is not null',
        claim:
          'before a surplus refund is sent the other transaction is asked about also behind a clock that went back',
      },
      {
        text: 'payments.as_of >= m.as_of and (m.transaction_id = $2',
        mutation: 'payments.as_of >= m.as_of and (m.transaction_id = $2 and false',
        claim:
          'before a surplus refund is sent its own answer counts also where the clock went back since it was requested',
      },
      {
        text: 'payments.as_of >= m.as_of',
        mutation: 'payments.as_of is not null',
        claim:
          'before a surplus refund is sent an entry without an id in place of the other success of the other transaction makes it wait',
      },
      {
        text: 'stored.confirmed && payment.listed',
        mutation: "stored.confirmed && payment.status !== ''",
        claim:
          'before a surplus refund is sent an entry without an id in place of the other success of the same transaction makes it wait',
      },
      {
        text: '($3 is not null or payments.unlisted_since',
        mutation: '($3 is null or payments.unlisted_since',
        claim:
          'before a surplus refund is sent one answer in which the other success is unlisted makes it wait, neither sent nor failed',
      },
      {
        text: 'clock_timestamp() - $4::float8',
        mutation: 'requested_at - $4::float8',
        claim:
          'before a surplus refund is sent the other transaction is asked about again if that was days ago',
      },
      {
        text: 'config.REFUND_CONFIRM_FAILED_MS + config.REFUND_BACKOFF_MAX_MS',
        mutation: 'config.REFUND_CONFIRM_FAILED_MS',
        claim:
          'before a surplus refund is sent what it asked for is young enough at its next check, however seldom that is',
      },
      {
        text: '!payments.some(({ unsettled }) => unsettled)',
        mutation: '!payments.some(({ unsettled }) => unsettled && !unsettled)',
        claim:
          'before a surplus refund is sent an earlier refund that is only inferred counts twice, and makes it wait until it is known',
      },
    ],
  ),
  {
    file: 'src/refunds/order-surplus.ts',
    text: 'and t.order_verified and o.order_verified',
    mutation: 'and true',
    test: 'test/plays/surplus/request-surplus.test.ts',
    claim: 'of two transactions of one order one does not count if its order id was never verified',
    control: 'of three payments, each surplus one is refunded by a request of its own',
  },
  ...guards({ file: 'src/refunds/order-surplus.ts' }, [
    {
      text: "and not ${isDisputed('t')} and not ${isDisputed('o')}`",
      mutation: "and (true or ${isDisputed('t')} or ${isDisputed('o')})`",
      test: 'test/plays/surplus/request-surplus.test.ts',
      claim:
        'of two transactions of one order one does not count while verified notifications disagree about its order',
      control: 'of three payments, each surplus one is refunded by a request of its own',
    },
    {
      text: '\n    or e.reading = 1 and upper(btrim(e.currency)) <> upper(btrim(${alias}.currency))',
      mutation: '',
      test: 'test/plays/surplus/request-surplus.test.ts',
      claim:
        'of two transactions of one order one does not count while verified notifications disagree about its currency',
      control:
        'of two transactions of one order one does not count while verified notifications disagree about its order',
    },
    {
      text: "o.state in ('paid', 'partially_refunded')",
      mutation: "o.state = 'paid'",
      test: 'test/plays/surplus/request-surplus.test.ts',
      claim:
        'of two transactions of one order one that is refunded in part counts with what is left of it',
      control: 'of two payments of one transaction the smaller one is refunded, whichever is newer',
    },
    {
      text: "where e.verdict = 'verified' and e.reading = 1))::text",
      mutation: "where e.verdict = 'verified' and e.reading = 0))::text",
      test: 'test/plays/surplus/request-surplus.test.ts',
      claim:
        'a request is refused for what is a part of the order by the highest amount that a verified notification names',
      control: 'of three payments, each surplus one is refunded by a request of its own',
    },
    {
      text: 'rows.some(isUnsettled) ||',
      mutation: 'rows.some((one) => isUnsettled(one) && stored.unsettled) ||',
      test: 'test/plays/surplus/send-surplus.test.ts',
      claim:
        'before a surplus refund is sent a failed refund that shows in this very answer counts twice, and makes it wait',
      control: 'at the same time copies of one request are one refund',
    },
    {
      text: 'where not f.matched and f.outcome is null)',
      mutation: 'where not f.matched and f.outcome is null and false)',
      test: 'test/plays/surplus/send-surplus.test.ts',
      claim:
        'before a surplus refund is sent a refund made elsewhere counts twice until a person decides, and makes it wait',
      control: 'at the same time copies of one request are one refund',
    },
    {
      text: 'measureRefundable(payment, rows, addAmounts([amount, ...taken]))',
      mutation: 'addAmounts([refundable, ...taken])',
      test: 'test/plays/surplus/send-surplus.test.ts',
      claim:
        'before a surplus refund is sent what the portal refunded of the other success of the same transaction stops it, also where a later refund asks for all of that',
      control:
        'before a surplus refund is sent a success of the transaction that is withdrawn makes it fail: nothing is sent',
    },
  ]),
  {
    file: 'src/payments/find-payments.ts',
    text: ') => `greatest(0, least(',
    mutation: ') => `${more} + greatest(0, least(',
    test: 'test/plays/surplus/send-surplus.test.ts',
    claim:
      'before a surplus refund is sent what the portal refunded of the other success of the other transaction stops it, also where a later refund asks for all of that',
    control:
      'before a surplus refund is sent a success of the transaction that is withdrawn makes it fail: nothing is sent',
  },
]
