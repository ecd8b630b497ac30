import { type Guard, guards } from './guard.ts'

export const REFUNDABLE: readonly Guard[] = [
  ...guards({ file: 'src/payments/find-payments.ts' }, [
    {
      text: 'least(payments.amount, payments.counted_amount)',
      mutation: 'least(payments.amount)',
      test: 'test/api/payments/odd-readings.test.ts',
      claim:
        'an amount of a success that changes one answer that shows ten times the amount lets no 400 of 100 out',
      control: 'an amount of a success that changes before it succeeded counts at once',
    },
    {
      text: "${sumOf('external_refunds', 'not r.matched and r.outcome is null')}",
      mutation: "${sumOf('external_refunds', 'not r.matched and r.outcome is null and false')}",
      test: 'test/plays/review/external-refunds.test.ts',
      claim:
        "a person's decision about an external refund that it never happened gives its amount back, with person and reason in timeline and feed",
      control:
        "a person's decision about an external refund is refused without a reason, with another outcome, and for an id that does not exist",
    },
    {
      text: "r.status <> 'failed' and r.return_sightings < 2",
      mutation: "r.status not in ('failed', 'needs_review') and r.return_sightings < 2",
      test: 'test/plays/transitions-played.test.ts',
      claim:
        'a refund without an answer ends in review, still reserved, when its outcome stays unknown',
      control: 'before sending a payment that has failed since fails the refund',
    },
  ]),
  ...guards({ file: 'src/refunds/request-rules.ts' }, [
    {
      text: 'compareAmounts(amount ?? refundable, refundable) > 0) {',
      mutation: 'compareAmounts(amount ?? refundable, refundable) > 1) {',
      test: 'test/api/refunds/request/request.test.ts',
      claim: 'a refund request is refused above what is left, and reports how much that is',
      control: 'a refund request is refused when nothing is left, also without an amount',
    },
    {
      text: 'if (accountHeld !== null) {',
      mutation: "if (accountHeld === '') {",
      test: 'test/api/holds/holds.test.ts',
      claim: 'a hold on the merchant refuses new refunds',
      control: 'a hold on the payment needs a reason and the scope ops',
    },
    {
      text: 'if (expectedVersion !== undefined && expectedVersion !== payment.version) {',
      mutation: "if (expectedVersion === '' && expectedVersion !== payment.version) {",
      test: 'test/api/refunds/request/expected-version.test.ts',
      claim:
        'a refund that names the version it was decided on of two under different keys that waited together, one is stored',
      control:
        'a refund that names the version it was decided on is replayed under its key, whatever version is named then',
    },
    {
      text: "if (status !== 'SUCCESS' || missing || unreadable) {",
      mutation: "if (status !== 'SUCCESS' || missing) {",
      test: 'test/api/sync/odd-entries.test.ts',
      claim:
        'an entry that cannot be read of a known payment: what was read last is kept and flagged, and cannot be refunded',
      control:
        'the answer is bounded: a very long entry keeps the members that the specification defines',
    },
    {
      text: "if (status !== 'SUCCESS' || missing || unreadable) {",
      mutation: "if (status !== 'SUCCESS' || unreadable) {",
      test: 'test/api/refunds/request/request.test.ts',
      claim: 'a refund request is refused while the payment is {"missing":true}',
      control: 'a refund request is refused for an unknown payment',
    },
  ]),
  ...guards({ file: 'src/refunds/request-facts.ts', test: 'test/races/refund-requests.test.ts' }, [
    {
      text: '${tx.unsafe(PAYMENT)} limit 1 for update',
      mutation: '${tx.unsafe(PAYMENT)} limit 1',
      claim:
        'a request that meets a concurrent one between its steps sums in a statement of its own after the wait: it sees what was reserved meanwhile',
      control:
        'a request that meets a concurrent one between its steps computes what is left only under its lock: two that waited do not both fit',
    },
    {
      text: "${tx.unsafe(transactionOf('own'))} limit 1 for update",
      mutation: "${tx.unsafe(transactionOf('own'))} limit 1",
      claim:
        'a request that meets a concurrent one between its steps waits for the transaction without holding the payment',
      control:
        'a request that meets a concurrent one between its steps that stored its key on another payment is found by the constraint on the key',
    },
  ]),
]
