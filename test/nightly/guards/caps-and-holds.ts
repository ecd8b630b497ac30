import { type Guard, guards } from './guard.ts'

export const CAPS_AND_HOLDS: readonly Guard[] = [
  {
    file: 'src/decisions/holds.ts',
    text: 'const own = held ? [] : await requireAnotherToRelease(tx, actor, subject)',
    mutation:
      "const own = held || actor.id !== '' ? [] : await requireAnotherToRelease(tx, actor, subject)",
    test: 'test/plays/approval/holds-back.test.ts',
    claim:
      'whoever asked for a refund does not end what holds it back: a hold on the merchant that another key of the same name set is somebody else’s',
    control:
      'whoever asked for a refund does not end what holds it back: a hold on the payment is released by whoever asked for no refund that it holds',
  },
  ...guards({ file: 'src/refunds/attempt.ts', test: 'test/api/holds/holds.test.ts' }, [
    {
      text: 'select m.hold from',
      mutation: 'select null from',
      claim: 'a hold on the merchant keeps the refund from being sent, until it is released',
      control: 'a hold on another account is not shown on this one',
    },
    {
      text: 'select p.hold from',
      mutation: 'select null from',
      claim: 'a hold on the payment keeps the refund from being sent, until it is released',
      control: 'a hold on the payment needs a reason and the scope ops',
    },
    {
      text: 'select r.hold from',
      mutation: 'select null from',
      claim: 'a hold on the refund keeps the refund from being sent, until it is released',
      control: 'a hold on another account is not shown on this one',
    },
    {
      text: 'where merchant_code = ${merchantCode} for key share`',
      mutation: 'where merchant_code = ${merchantCode}`',
      claim:
        'a hold on the merchant is set only after a commit that records an attempt, which then is sent',
      control: 'a hold on the refund needs a reason and the scope ops',
    },
  ]),
  {
    file: 'src/decisions/unit-of-work.ts',
    text: 'if (deciding.locksAccount) await lockAccount',
    mutation: "if (deciding.locksAccount && objectId === '') await lockAccount",
    test: 'test/api/holds/holds.test.ts',
    claim:
      'a hold on the merchant is set only after a commit that records an attempt, which then is sent',
    control: 'a hold on the refund needs a reason and the scope ops',
  },
  ...guards({ file: 'src/refunds/caps.ts', test: 'test/api/refunds/request/caps.test.ts' }, [
    {
      text: 'select pg_advisory_xact_lock(${CAPS_LOCK}, hashtext(current_schema() ||',
      mutation: 'select pg_advisory_xact_lock_shared(${CAPS_LOCK}, hashtext(current_schema() ||',
      claim:
        'the daily total of a key accepts one of two concurrent refunds that are the first of the day',
      control: 'the daily total of a key is reported with a single refund that is too large',
    },
    {
      text: 'compareAmounts(amount, max) > 0) {',
      mutation: 'compareAmounts(amount, max) > 1) {',
      claim: 'the daily total of a key is reported with a single refund that is too large',
      control: 'the daily total of a key replays accepted refunds also when it is used up',
    },
    {
      text: 'compareAmounts(amount, leftToday) > 0) {',
      mutation: 'compareAmounts(amount, leftToday) > 1) {',
      claim:
        'the daily total of a key is counted over payments, reports what is left today, and does not affect other keys',
      control: 'the daily total of a key replays accepted refunds also when it is used up',
    },
  ]),
  ...guards({ file: 'src/refunds/caps.ts' }, [
    {
      text: "caps[currency] ?? '0'",
      mutation: "caps[currency] ?? '999999999'",
      test: 'test/api/refunds/request/caps-by-currency.test.ts',
      claim: 'the daily total by currency counts each currency by itself',
      control:
        'the daily total of a key counts what this key has asked for on this day, and nothing else',
    },
    {
      text: 'and r.attempts = 0 and',
      mutation: 'and r.attempts >= 0 and',
      test: 'test/api/refunds/request/caps-by-currency.test.ts',
      claim:
        'the daily total of a key keeps what may have moved: a refund that was sent, whatever the reason',
      control: 'the daily total of a key keeps what may have moved: a refund that was expired',
    },
    {
      text: "and r.failure_reason <> 'resolved', false)",
      mutation: 'and r.failure_reason is not null, false)',
      test: 'test/api/refunds/request/caps-by-currency.test.ts',
      claim:
        'the daily total of a key keeps what may have moved: a refund that was decided as failed',
      control:
        'the daily total of a key keeps what may have moved: a refund that was sent and refused',
    },
    {
      text: '[byCurrency[code], byCurrency[UNVERIFIED]]',
      mutation: '[byCurrency[code]]',
      test: 'test/api/refunds/request/caps-by-currency.test.ts',
      claim:
        'the daily total by currency counts an amount without a verified currency in every one',
      control:
        'the daily total of a key counts what this key has asked for on this day, and nothing else',
    },
    {
      text: 'from (select (now() at time zone ${zone})::date as day) as today',
      mutation:
        'from (select coalesce(now()::date, (now() at time zone ${zone})::date) as day) as today',
      test: 'test/api/refunds/request/caps.test.ts',
      claim: 'the daily total of a key follows the days of CAPS_TIME_ZONE',
      control:
        'the daily total of a key ends with the day in UTC, whatever time zone the session has',
    },
  ]),
  {
    file: 'src/refunds/store-refund.ts',
    text: 'capKeyId: today && access.chainId',
    mutation: 'capKeyId: today && access.id',
    test: 'test/api/access/keys.test.ts',
    claim: 'rotation does not reset the daily cap: old and new key share the total',
    control: 'a rotation during the revocation of the key creates no successor',
  },
  {
    file: 'src/decisions/holds.ts',
    text: 'if (since !== (change.shownSince ?? since)) {',
    mutation: "if (since === '' && change.shownSince === since.repeat(2)) {",
    test: 'test/console/story/post-hold.test.ts',
    claim:
      'a hold is not changed by a form that was shown with another one, whose typed reason stays in no other form',
    control: 'a hold of a payment is set with a reason, shown with it, and released',
  },
]
