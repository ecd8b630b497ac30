import { type Guard, guards } from './guard.ts'

export const SECOND_PRINCIPALS: readonly Guard[] = [
  {
    file: 'src/refunds/request-facts.ts',
    text: '(folded_email = ${folded} or id::text = ${folded})',
    mutation: 'id::text = ${folded}',
    test: 'test/plays/approval/principals.test.ts',
    claim: 'what is requested on behalf of the email of a person is not decided by them',
    control: 'what Weiß Ivan requested on behalf of weiss ivan is decided by neither',
  },
  {
    file: 'src/decisions/second-person.ts',
    text: 'and (r.requested_principal = ${principal} or not ',
    mutation: 'and (false or not ',
    test: 'test/plays/approval/approval.test.ts',
    claim:
      'a decision about the outcome is made by the only other who may decide, whom the asker named, and not by the asker',
    control: 'a decision about the outcome is not made by whoever asked for the refund',
  },
  {
    file: 'src/decisions/second-person.ts',
    text: 'and k.principal not in (${principal}, r.requested_principal)',
    mutation: 'and k.principal not in (${principal})',
    test: 'test/plays/approval/approval.test.ts',
    claim:
      'a decision about the outcome is made by the only other who may decide, whom the asker named, and not by the asker',
    control: 'a decision about the outcome is not made by whoever asked for the refund',
  },
  ...guards({ file: 'src/access/principal.ts', test: 'test/plays/approval/principals.test.ts' }, [
    {
      text: '    .toLowerCase()\n    .toUpperCase()\n',
      mutation: '    .toUpperCase()\n',
      claim: 'what Weiß Ivan requested on behalf of WEIẞ İvan is decided by neither',
      control: 'what Weiß Ivan requested on behalf of weiss ivan is decided by neither',
    },
    {
      text: ".replaceAll(/i\\u0307+/g, 'i')",
      mutation: ".replaceAll(/\\u0130/g, 'i')",
      claim: 'what Weiß Ivan requested on behalf of WEIẞ İvan is decided by neither',
      control: 'what Weiß Ivan requested on behalf of weiss ivan is decided by neither',
    },
    {
      text: 'return text !== null && names.map(foldName).includes(foldName(text))',
      mutation: 'return text !== null && names.slice(0, 1).includes(text)',
      claim: 'what Ирина requested on behalf of ИРИНА is decided by neither',
      control: 'no sequence of keys, people, spellings, roles and accounts makes one principal two',
    },
  ]),
  ...guards({ file: 'src/decisions/holds.ts', test: 'test/plays/approval/holds-back.test.ts' }, [
    {
      text: 'setters.length > 0 && setters.every(({ principal }) => principal === who.principal)',
      mutation: 'setters.every(({ principal }) => principal === who.principal)',
      claim:
        'whoever asked for a refund does not end what holds it back: a hold on the payment that is on record nowhere is somebody else’s',
      control:
        'whoever asked for a refund does not end what holds it back: a discrepancy of its payment does not keep them from a note or from taking care of it',
    },
    {
      text: 'setters.length > 0 && setters.every(({ principal }) => principal === who.principal)',
      mutation:
        'setters.length > 0 && setters.some(({ principal }) => principal === who.principal)',
      claim:
        'whoever asked for a refund does not end what holds it back: a hold on the merchant that they set again themselves is still that of somebody else',
      control:
        'whoever asked for a refund does not end what holds it back: a discrepancy of its payment does not keep them from a note or from taking care of it',
    },
    {
      text: 'heldSince: setters[0]?.at ?? null',
      mutation: 'heldSince: setters.at(-1)?.at ?? null',
      claim:
        'once their refund is over, whoever asked for it does not release the hold that another has set on the payment, by its cancellation',
      control:
        'whoever asked for a refund does not end what holds it back: a hold on the refund that is on record nowhere is somebody else’s',
    },
  ]),
  ...guards(
    {
      file: 'src/decisions/second-person.ts',
      test: 'test/plays/approval/holds-back.test.ts',
      control:
        'whoever asked for a refund does not end what holds it back: a discrepancy of its payment does not keep them from a note or from taking care of it',
    },
    [
      {
        text: 'if (await mayAnotherDecide(tx, access, own, others)) {',
        mutation: "if ((await mayAnotherDecide(tx, access, own, others)) && deed === '') {",
        claim:
          'whoever asked for a refund does not end what holds it back: an external refund of its payment is decided by another principal',
      },
      {
        text: 'const own = open.filter((refund) => isOwnRequest(who, refund))',
        mutation:
          'const own = open.filter((refund) => isOwnRequest(who, refund) && refund.foldedOnBehalfOf === null)',
        claim:
          'whoever asked for a refund does not end what holds it back: a discrepancy of its payment is not resolved by the person that it was asked for, or with another key of that person',
      },
    ],
  ),
  {
    file: 'src/decisions/second-person.ts',
    text: 'const asked = isOwnRequest(who, refund)',
    mutation: "const asked = isOwnRequest(who, refund) && refund.refundId === ''",
    test: 'test/plays/approval/approval.test.ts',
    claim: 'a decision about the outcome is not made by whoever asked for the refund',
    control:
      'a refund above the threshold is checked against what is left when it is sent, not when it was approved',
  },
  {
    file: 'src/decisions/discrepancies.ts',
    text: 'const own = await requireAnother(tx, access, row, `resolve discrepancy ${id}`)',
    mutation:
      'const own = await requireAnother(tx, access, { ...row, paymentId: null, refundId: null }, `resolve discrepancy ${id}`)',
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: a discrepancy of its payment that is about the refund alone is not resolved by them either',
    control:
      'whoever asked for a refund does not end what holds it back: a hold on the refund that is on record nowhere is somebody else’s',
  },
  ...guards(
    { file: 'src/decisions/second-person.ts', test: 'test/plays/approval/holds-back.test.ts' },
    [
      {
        text: 'or ${hasFailedSince(tx, heldSince)} order by',
        mutation: 'or (${hasFailedSince(tx, heldSince)} and false) order by',
        claim:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the payment, by its cancellation',
        control:
          'whoever asked for a refund does not end what holds it back: a hold on the refund that is on record nowhere is somebody else’s',
      },
      {
        text: "${since}::timestamptz - interval '1 minute')",
        mutation: '${since}::timestamptz)',
        claim:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the payment, by a cancellation that had begun before and waited for it',
        control:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the payment, by its cancellation',
      },
      {
        text: 'and ${hasFailedSince(tx, heldSince)}\n',
        mutation: 'and ${hasFailedSince(tx, heldSince)} and false\n',
        claim:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the merchant, by its cancellation',
        control:
          'whoever asked for a refund does not end what holds it back: a hold on the refund that is on record nowhere is somebody else’s',
      },
      {
        text: "r.status = 'failed' and r.updated_at",
        mutation: "r.status = 'failed' and r.failure_source = 'merchant' and r.updated_at",
        claim:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the payment, by its time',
        control:
          'whoever asked for a refund does not end what holds it back: a hold on the refund that is on record nowhere is somebody else’s',
      },
      {
        text: "r.status = 'failed' and r.updated_at",
        mutation: "r.status = 'failed' and r.attempts = 0 and r.updated_at",
        claim:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the payment since it was sent, by a refusal',
        control:
          'once their refund is over, whoever asked for it does not release the hold that another has set on the payment, by its time',
      },
      {
        text: '(${tx.unsafe(SURPLUS_REFUNDS)})',
        mutation: '(${tx.unsafe(SURPLUS_REFUNDS)} and false)',
        claim:
          'whoever asked for a surplus refund does not end what holds it back in another payment of the same transaction',
        control:
          'whoever asked for a surplus refund does not end what holds it back but releases a hold on another payment of the order, which does not',
      },
      {
        text: '  where ${COUNTS_WITH}`',
        mutation: '  where ${COUNTS_WITH} or true`',
        claim:
          'whoever asked for a surplus refund does not end what holds it back but decides what another transaction has that does not count with its own, as its order id is disputed',
        control:
          'whoever asked for a surplus refund does not end what holds it back in another payment of the same transaction',
      },
      {
        text: "byKey('o', ['merchant_code', 'order_id'], 't')",
        mutation: "byKey('o', TRANSACTION, 't')",
        claim:
          'whoever asked for a surplus refund does not end what holds it back in another payment of another transaction of the order',
        control:
          'whoever asked for a surplus refund does not end what holds it back in another payment of the same transaction',
      },
    ],
  ),
  {
    file: 'src/decisions/external.ts',
    text: 'changed: listTransactionsOf([...own, key])',
    mutation: 'changed: listTransactionsOf([...own.slice(0, 0), key])',
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a surplus refund does not end what holds it back and is marked when nobody else may decide',
    control:
      'whoever asked for a surplus refund does not end what holds it back in another payment of the same transaction',
  },
  {
    file: 'src/refunds/notifications.ts',
    text: "else if (draft.now.status === 'failed' && readResult(one.code) === 'success')",
    mutation: "else if (draft.now.status === 'returned' && readResult(one.code) === 'success')",
    test: 'test/plays/evidence/late-news.test.ts',
    claim:
      'a success that is notified of a cancelled refund, with another amount, reserves the refund again',
    control: 'a restore that is repeated keeps the reason of before once',
  },
  ...guards(
    {
      file: 'src/decisions/refunds.ts',
      test: 'test/plays/approval/holds-back.test.ts',
      control:
        'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them once their own has ended',
    },
    [
      {
        text: 'const held = isOutcome(request) ?',
        mutation: "const held = isOutcome(request) && refundId === '' ?",
        claim:
          'whoever asked for a refund does not end what holds it back: another refund of its payment is not decided as succeeded by them',
      },
      {
        text: 'const heldBack = { ...key, paymentId',
        mutation: 'const heldBack = { merchantCode, paymentId',
        claim:
          'whoever asked for a surplus refund does not end what holds it back by deciding a refund of another payment of the order',
      },
      {
        text: 'changed: listTransactionsOf([...own, key])',
        mutation: 'changed: listTransactionsOf([...own.slice(0, 0), key])',
        claim:
          'whoever asked for a surplus refund does not end what holds it back by deciding such a refund, and is marked when nobody else may decide',
      },
      {
        text: 'refundIds = [refundId, ...own.map(',
        mutation: 'refundIds = [refundId, ...own.slice(0, 0).map(',
        claim:
          'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them, and marked, when nobody else may decide',
      },
    ],
  ),
  {
    file: 'src/decisions/second-person.ts',
    text: 'and not exists (\n        select from refunds as d',
    mutation: 'and exists (\n        select from refunds as d',
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them, and marked, when the only other one who may decide asked for it',
    control:
      'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them once their own has ended',
  },
  {
    file: 'src/decisions/outcomes.ts',
    text: '${describeSelfDecided(access, own)}`',
    mutation: '${describeSelfDecided(access, own.slice(0, 0))}`',
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them, and marked, when nobody else may decide',
    control:
      'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them once their own has ended',
  },
  {
    file: 'src/decisions/second-person.ts',
    text: 'others: ends.decided === undefined ? others : [ends.decided, ...others]',
    mutation: 'others: ends.decided === undefined ? others.slice(0, 0) : [ends.decided, ...others]',
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: an external refund of its payment is decided by them, and marked, when whoever else may decide waits for it too',
    control:
      'whoever asked for a refund does not end what holds it back: an external refund of its payment is decided by them, and marked, when nobody else may decide',
  },
  {
    file: 'src/decisions/second-person.ts',
    text: "(d.status = 'returned' and k.principal = d.resolved_principal)",
    mutation: "(d.status = 'failed' and k.principal = d.resolved_principal)",
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them, and marked, when the only other one who may decide gave the first word on it',
    control:
      'whoever asked for a refund does not end what holds it back: another refund of its payment is decided by them once their own has ended',
  },
  {
    file: 'src/decisions/second-person.ts',
    text: 'if (ends.heldSince !== undefined) return',
    mutation: "if (ends.heldSince === '') return",
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: a hold on the payment that somebody else set who asked for a refund of the payment, too, is not released by them',
    control:
      'whoever asked for a refund does not end what holds it back: a hold on the payment that somebody else set is released by another principal',
  },
  {
    file: 'src/console/refund-subject.ts',
    text: 'explainOutcomes(find, possible)',
    mutation: 'explainOutcomes(find, outcomes)',
    test: 'test/console/tasks/own-refund.test.ts',
    claim:
      'another refund that holds back one’s own does not say what they could decide, where another person has to',
    control:
      'a discrepancy that holds back a refund of one’s own offers no decision, says why, and refuses a forged one',
  },
  {
    file: 'src/console/refund-subject.ts',
    text: "mayDecide === 'another' ? [] : possible",
    mutation: "mayDecide === 'self' ? [] : possible",
    test: 'test/console/tasks/own-refund.test.ts',
    claim:
      'another refund that holds back one’s own offers no decision, says why, and refuses a forged one',
    control:
      'a discrepancy that holds back a refund of one’s own offers no decision, says why, and refuses a forged one',
  },
]
