import { type Guard, guards } from './guard.ts'

export const EXTERNAL_REFUNDS: readonly Guard[] = [
  ...guards({ file: 'src/decisions/external.ts' }, [
    {
      text: "if (state === 'matched') return 'the refunded amount shows it'",
      mutation: "if (state === 'matched') return null",
      test: 'test/plays/review/external-refunds.test.ts',
      claim:
        "a person's decision about an external refund against what is known needs againstEvidence, and is a discrepancy",
      control:
        "a person's decision about an external refund is refused without a reason, with another outcome, and for an id that does not exist",
    },
    {
      text: 'if (left.gte(draft.now.amount)) return',
      mutation: 'if (left.gte(0)) return',
      test: 'test/plays/review/external-refunds.test.ts',
      claim:
        "a person's decision about an external refund that it is part of the first sight is refused for what refunds of ours explain of it",
      control:
        "a person's decision about an external refund is refused without a reason, with another outcome, and for an id that does not exist",
    },
    {
      text: 'new Big(measureUnmatched(payment, locked.drafts)).gte(amount)',
      mutation: 'new Big(measureUnmatched(payment, locked.drafts)).gte(0)',
      test: 'test/plays/review/external-refunds.test.ts',
      claim:
        "a person's decision about an external refund that it is matched is refused while no growth is left for it",
      control:
        "a person's decision about an external refund is refused without a reason, with another outcome, and for an id that does not exist",
    },
    {
      text: "const isGrown = compareAmounts(unexplained, '0') > 0",
      mutation: "const isGrown = compareAmounts(unexplained, '0') > 1",
      test: 'test/plays/external/undone.test.ts',
      claim:
        'growth that was entered and undone is unexplained again that was notified is, too, as soon as a person decides that it never happened',
      control: 'growth that is explained in the meantime is resolved without entering anything',
    },
    {
      text: 'if (deriveExternalState(now) !== before) {',
      mutation: "if (deriveExternalState(now) !== before && now.paymentId === '') {",
      test: 'test/plays/review/external-refunds.test.ts',
      claim:
        "a person's decision about an external refund is accepted once when two people decide at once, and the other learns it",
      control:
        "a person's decision about an external refund is refused without a reason, with another outcome, and for an id that does not exist",
    },
    {
      text: 'if (contrary !== null && !againstEvidence) {',
      mutation: "if (contrary !== null && !againstEvidence && now.paymentId === '') {",
      test: 'test/plays/review/external-refunds.test.ts',
      claim:
        "a person's decision about an external refund against what is known needs againstEvidence, and is a discrepancy",
      control:
        "a person's decision about an external refund is refused without a reason, with another outcome, and for an id that does not exist",
    },
  ]),
  {
    file: 'src/refunds/external.ts',
    text: 'if (!documented || !verified || result === undefined)',
    mutation: 'if (!documented || (!verified && reading > 1) || result === undefined)',
    test: 'test/plays/reconcile/notifications.test.ts',
    claim: 'with IPN_SIGNATURE=optional a forged notification of a portal refund matches no delta',
    control: 'a notification of our own refund with code 99 changes nothing',
  },
  ...guards(
    {
      test: 'test/plays/evidence/portal.test.ts',
      control:
        'portal refunds from before the payment was first seen are consumed whole, oldest first',
    },
    [
      {
        file: 'src/refunds/external.ts',
        text: "  if (outcome === 'never_happened') {",
        mutation:
          "  if (outcome === 'never_happened') {\n    changeExternal(draft, { outcome: null }, describeReserved(one))",
        claim:
          'an external refund that a person decided never to have happened stays so, whatever is notified later',
      },
      {
        file: 'src/refunds/external.ts',
        text: 'failureNotifiedAt !== null || isDropped(draft.now)',
        mutation: 'failureNotifiedAt === null || isDropped(draft.now)',
        claim:
          'an external refund whose failure is notified after its success stays reserved, and a person decides',
      },
      {
        file: 'src/refunds/lock-refunds.ts',
        text: "and o.code ~ '^-?[1-9][0-9]{0,8}$' and",
        mutation: "and o.code ~ '^x$' and",
        claim:
          'an external refund whose failure is notified before its success stays reserved, and a person decides',
      },
      {
        file: 'src/sync/apply-answers.ts',
        text: '[end.askAgainInMs, refunds.askAgainInMs].filter(',
        mutation: '[end.askAgainInMs, refunds.found.length > 1e9 ? 0 : undefined].filter(',
        claim:
          'where nothing is queried for as long as a refund may take an external refund that no growth shows is queried once more, and told',
      },
    ],
  ),
  ...guards({ test: 'test/plays/external/entered.test.ts' }, [
    {
      file: 'src/refunds/reconcile.ts',
      text: '=> !isShownByPayment(now)',
      mutation: "=> !isShownByPayment(now) && now.amount === ''",
      claim:
        'growth that is entered and was a refund of ours is told once that succeeds and nothing shows it',
      control: 'growth that is entered leaves to a person what was inferred and may not be its own',
    },
    {
      file: 'src/decisions/external.ts',
      text: 'doubted: await doubtInferred(ctx.config, tx, { payment, locked }) }',
      mutation:
        'doubted: ctx.config.demo ? await doubtInferred(ctx.config, tx, { payment, locked }) : [] }',
      claim: 'growth that is entered leaves to a person what was inferred and may not be its own',
      control:
        'growth that is entered and was a refund of ours is told once that succeeds and nothing shows it',
    },
    {
      file: 'src/refunds/match.ts',
      text: 'forgetDecidedGrowth(payment, drafts, measureUnmatched(payment, drafts))',
      mutation: 'forgetDecidedGrowth(payment, [], measureUnmatched(payment, drafts))',
      claim:
        'growth that is entered beside a refund decided as failed is no growth that the person saw, at once',
      control:
        'growth that is entered beside a refund decided as failed is no growth that the person saw, after an answer',
    },
    {
      file: 'src/decisions/external.ts',
      text: 'for (const draft of drafts) await',
      mutation: 'for (const draft of doubted) await',
      claim:
        'growth that is entered beside a refund decided as failed is no growth that the person saw, at once',
      control:
        'growth that is entered beside a refund decided as failed is no growth that the person saw, after an answer',
    },
  ]),
  {
    file: 'src/decisions/external.ts',
    text: 'if (row.failureNotifiedAt === null) return null',
    mutation: "if (row.failureNotifiedAt !== '') return null",
    test: 'test/plays/evidence/portal.test.ts',
    claim:
      'an external refund whose success and failure were both notified never_happened of it, with growth of 30, leads to 409 without againstEvidence',
    control:
      'an external refund whose success and failure were both notified never_happened of it, with growth of 0, leads to 200 without againstEvidence',
  },
  {
    file: 'src/refunds/external.ts',
    text: "result === 'success' ? tellUnreadable(locked, notification) : []",
    mutation: "result === 'failure' ? tellUnreadable(locked, notification) : []",
    test: 'test/plays/evidence/portal.test.ts',
    claim: 'a verified success of a refund at the portal whose amount cannot be read is told',
    control:
      'portal refunds from before the payment was first seen are consumed whole, oldest first',
  },
  ...guards({ file: 'src/refunds/lock-refunds.ts', test: 'test/plays/evidence/portal.test.ts' }, [
    {
      text: 'array(${tx.unsafe(UNRESERVED)}) as unreserved',
      mutation: 'array(select * from (${tx.unsafe(UNRESERVED)}) as u where false) as unreserved',
      claim:
        'growth that fits a verified success with a member that no table lists settles no refund of ours',
      control:
        'portal refunds from before the payment was first seen are consumed whole, oldest first',
    },
    {
      text: 'sum(f.amount) as entered',
      mutation: '1000 * sum(f.amount) as entered',
      claim:
        'growth that fits a verified success with a member that no table lists 10 of which was entered since leaves ours unknown',
      control:
        'growth that fits a verified success with a member that no table lists 30 of which was entered since leaves ours succeeded',
    },
    {
      text: 'where e.total > coalesce(entered, -1)',
      mutation: 'where e.amount > coalesce(entered, -1)',
      claim:
        'growth that fits a verified success with a member that no table lists is not explained twice by what was entered: with a second refund ours is unknown',
      control:
        'growth that fits a verified success with a member that no table lists 30 of which was entered since leaves ours succeeded',
    },
    {
      text: 'e.unreadable > 0 and e.told > entries',
      mutation: 'e.unreadable > entries',
      claim:
        'a verified success of a refund at the portal whose amount cannot be read, told last, is not explained by the entry that explains one that can be',
      control: 'a verified success of a refund at the portal whose amount cannot be read is told',
    },
    {
      text: ' or (e.unreadable > 0 and',
      mutation: ' or (e.unreadable > 9 and',
      claim:
        'a verified success of a refund at the portal whose amount cannot be read is explained by one entry, and a second one is not',
      control: 'a verified success of a refund at the portal whose amount cannot be read is told',
    },
    {
      text: 'e.amount) *,',
      mutation: 'e.amount, e.id) *,',
      claim:
        'growth that fits a verified success with a member that no table lists is not explained twice by what was entered: with the same, told again in other words ours is succeeded',
      control:
        'growth that fits a verified success with a member that no table lists 30 of which was entered since leaves ours succeeded',
    },
    {
      text: 'case when e.documented then e.amount is null and',
      mutation: 'case when e.documented then false and',
      claim:
        'a verified success of a refund at the portal whose amount cannot be read keeps growth from settling a refund of ours, until growth was entered',
      control: 'a verified success of a refund at the portal whose amount cannot be read is told',
    },
  ]),
  ...guards({ test: 'test/plays/evidence/portal.test.ts' }, [
    {
      file: 'src/refunds/external.ts',
      text: 'verified && (!documented || amount === null)',
      mutation: "verified && (!documented || amount === '')",
      claim:
        'a verified success of a refund at the portal whose amount cannot be read leaves to a person what was inferred before',
      control: 'a verified success of a refund at the portal whose amount cannot be read is told',
    },
    {
      file: 'src/refunds/lock-refunds.ts',
      text: 'and f.amount = coalesce(e.amount, f.amount)',
      mutation: 'and f.amount = e.amount',
      claim:
        'a verified success of a refund at the portal whose amount cannot be read is explained by the same with one that can, once growth shows it',
      control: 'a verified success of a refund at the portal whose amount cannot be read is told',
    },
    {
      file: 'src/ipn/store.ts',
      text: "(select max(first_as_of) + interval '1 microsecond' from locked)",
      mutation: "(select max(first_as_of) - interval '1 day' from locked)",
      claim:
        'a verified success of a refund at the portal is later than the first answer, also by a clock that has gone back since',
      control:
        'portal refunds from before the payment was first seen are consumed whole, oldest first',
    },
  ]),
  {
    file: 'src/refunds/external.ts',
    text: 'return [...changes, ...unread].some(',
    mutation: 'return [...changes, ...unread.slice(0, 0)].some(',
    test: 'test/plays/evidence/late-news.test.ts',
    claim:
      'a success that was inferred is judged again by a later undocumented one that its growth fits',
    control: 'a restore that is repeated keeps the reason of before once',
  },
  {
    file: 'src/refunds/reconcile.ts',
    text: 'now.sinceSentMs) ?? now.sinceRequestedMs',
    mutation: 'now.sinceSentMs) ?? 0',
    test: 'test/plays/evidence/late-news.test.ts',
    claim:
      'a refund that was not sent from here, succeeded by its notification and shows in no growth is told',
    control: 'a restore that is repeated keeps the reason of before once',
  },
]
