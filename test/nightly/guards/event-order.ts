import type { Guard } from './guard.ts'

export const EVENT_ORDER: readonly Guard[] = [
  {
    file: 'src/refunds/event-order.ts',
    text: 'then ${event}_number <= t.claimed end, ',
    mutation: 'then null::boolean end, ',
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a requested refund is not sent on it",
    control:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a notified failure is not confirmed by it",
  },
  {
    file: 'src/refunds/event-order.ts',
    text: "'t.want = t.claimed'",
    mutation: "'t.want >= t.claimed'",
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a notified failure is not confirmed by it",
    control:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a requested refund is not sent on it",
  },
  {
    file: 'src/refunds/lock-refunds.ts',
    text: '${tx.unsafe(NOTHING_SINCE)} and e.first_received_at < t.as_of, false)',
    mutation: '${tx.unsafe(NOTHING_SINCE)}, false)',
    test: 'test/plays/evidence/event-order.test.ts',
    claim:
      'the answer that moves a payment does not confirm a failure that was notified since it was asked for',
    control: 'the answer that moves a payment does not show what was sent since it was asked for',
  },
  {
    file: 'src/refunds/store-refund.ts',
    text: 'payment.want + 1,',
    mutation: 'payment.want,',
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a requested refund is not sent on it",
    control:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a notified failure is not confirmed by it",
  },
  {
    file: 'src/decisions/refunds.ts',
    text: 'draft.now.want + 1 }',
    mutation: 'draft.now.want }',
    test: 'test/plays/approval/approval.test.ts',
    claim:
      'a refund above the threshold is sent on what a query shows that was sent after the approval, also by a clock that goes back',
    control:
      'a refund above the threshold is checked against what is left when it is sent, not when it was approved',
  },
  {
    file: 'src/refunds/choose.ts',
    text: 'firstSentNumber: isFirst ? want : firstSentNumber,',
    mutation: 'firstSentNumber: isFirst && want < 0 ? want : firstSentNumber,',
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "the next answer speaks about what came before, although the database's clock has gone back since: growth shows a refund that was sent",
    control:
      "the next answer speaks about what came before, although the database's clock has gone back since: no growth after a refusal begins to confirm it",
  },
  {
    file: 'src/refunds/event-order.ts',
    text: 'coalesce(case when ${event}_number <= t.want then',
    mutation: 'coalesce(case when t.want > 0 then',
    test: 'test/plays/evidence/event-order.test.ts',
    claim: 'a refund whose number is of another transaction is sent',
    control:
      'an attempt that is recorded again was not sent before an answer that was asked for meanwhile',
  },
  {
    file: 'src/refunds/answer.ts',
    text: 'refusedAt, refusedNumber: draft.now.want }',
    mutation: 'refusedAt, refusedNumber: draft.now.refusedNumber }',
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "the next answer speaks about what came before, although the database's clock has gone back since: no growth after a refusal begins to confirm it",
    control:
      "the next answer speaks about what came before, although the database's clock has gone back since: growth shows a refund that was sent",
  },
  {
    file: 'src/refunds/notifications.ts',
    text: 'failureNotifiedNumber: draft.now.want,',
    mutation: 'failureNotifiedNumber: draft.now.failureNotifiedNumber,',
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "the next answer speaks about what came before, although the database's clock has gone back since: no growth after a notified failure begins to confirm it",
    control:
      "the next answer speaks about what came before, although the database's clock has gone back since: growth shows a refund that was sent",
  },
  {
    file: 'src/refunds/answer.ts',
    text: 'draft.now.firstSentAt === null ? want : draft.now.firstSentNumber',
    mutation: 'want < 0 ? want : recorded.firstSentNumber',
    test: 'test/plays/evidence/event-order.test.ts',
    claim:
      'an attempt that is recorded again was not sent before an answer that was asked for meanwhile',
    control: 'a refund whose number is of another transaction is sent',
  },
  {
    file: 'src/transactions/move-payments.ts',
    text: '...{ requestedNumber: null, approvedNumber: null, firstSentNumber: null },',
    mutation: '...{ requestedNumber: null, approvedNumber: null },',
    test: 'test/plays/evidence/event-order.test.ts',
    claim: 'the answer that moves a payment does not show what was sent since it was asked for',
    control: 'a refund whose number is of another transaction is sent',
  },
  {
    file: 'src/sync/record-refund-answer.ts',
    text: 'if (locked) await requestQuery(tx, locked.key)',
    mutation: "if (locked?.key.transactionId === '') await requestQuery(tx, locked.key)",
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a refusal that is recorded late is not confirmed by it",
    control:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a notified failure is not confirmed by it",
  },
  {
    file: 'src/sync/record-refund-answer.ts',
    text: "if (refunds === 'busy') throw new AttemptInProgressError()\n",
    mutation:
      "if (refunds === 'busy') {\n    await tx`commit`\n    throw new AttemptInProgressError()\n  }\n",
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a worker that lost its lease and whose refund another worker is sending again waits with its answer, and asks for no query before',
    control: 'a worker that lost its lease writes its answer while the next one queries',
  },
  {
    file: 'src/sync/fence.ts',
    text: 'least(sent.at, least(now(), clock_timestamp())',
    mutation: 'greatest(sent.at, least(now(), clock_timestamp())',
    test: 'test/plays/evidence/clock-back.test.ts',
    claim:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a refund at the portal is not part of what it shows of a new payment",
    control:
      "an answer that was asked for before the database's clock went back does not speak about what came meanwhile: a requested refund is not sent on it",
  },
]
