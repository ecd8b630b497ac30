import { type Guard, guards } from './guard.ts'

export const FEED: readonly Guard[] = [
  {
    file: 'src/sync/finish-commit.ts',
    text: ' || row.isNamed === true,',
    mutation: ',',
    test: 'test/api/feed/recorded-events.test.ts',
    claim: 'a transaction that is named after it was paid has an event',
    control: 'an abandoned transaction has an event each time it is abandoned',
  },
  {
    file: 'src/sync/finish-commit.ts',
    text: ' || final !== row.final,',
    mutation: ',',
    test: 'test/api/transactions/wait-for-transaction.test.ts',
    claim:
      'a transaction that only becomes final wakes who waits: a refund that was never sent had ended',
    control: 'without an ETag a final transaction is answered at once',
  },
  {
    file: 'src/decisions/refunds.ts',
    text: 'compareAmounts(left, data.refundableAmount) === 0',
    mutation: 'compareAmounts(left, data.refundableAmount) !== 0',
    test: 'test/api/feed/recorded-events.test.ts',
    claim:
      'a refund has an event of its payment too, if a decision changes what can be refunded, and only then',
    control: 'an abandoned transaction has an event each time it is abandoned',
  },
  ...guards(
    {
      file: 'src/transactions/check-order.ts',
      test: 'test/api/transactions/check-order.test.ts',
      control: 'checks of one order at once wait for each other, without a deadlock',
    },
    [
      {
        text: 'const changed = rows.filter((row) => row.isChanged)',
        mutation: 'const changed = rows.slice(0, 0)',
        claim:
          'two paid transactions of one order are flagged on both, with a discrepancy and an event for each',
      },
      {
        text: '!isChanged && isPaidTwice === row.isFlagged && !row.orderCheckDue',
        mutation: '!isChanged && isPaidTwice !== row.isFlagged && !row.orderCheckDue',
        claim: 'a check of an order locks and writes only what changes, however many are paid',
      },
      {
        text: 'order_check_due = t.version <> s.version',
        mutation: 'order_check_due = t.order_check_due and t.version <> s.version',
        claim:
          'a check of an order checks again what changes while it waits, so that no flag is stale',
      },
      {
        text: 'select pg_advisory_xact_lock(${ORDER_LOCK},',
        mutation: 'select pg_try_advisory_xact_lock_shared(${ORDER_LOCK},',
        claim: 'a check of an order that has read the order later also writes it later',
      },
    ],
  ),
  {
    file: 'src/feed/publish-events.ts',
    text: '      select merchant_code, transaction_id, type, data, at from taken order by taken.id\n',
    mutation:
      '      select merchant_code, transaction_id, type, data, at from taken order by taken.id desc\n',
    test: 'test/api/feed/read.test.ts',
    claim: 'a page holds at most `limit` events, oldest first, and its cursor leads to the next',
    control: '/v1/events refuses types in types=payment.deleted',
  },
  ...guards({ file: 'src/feed/read-feed.ts', test: 'test/api/feed/read.test.ts' }, [
    {
      text: '  if (merchantCode === undefined) return undefined\n',
      mutation: '  if (merchantCode === undefined) return [EVERY_MERCHANT]\n',
      claim:
        'a key of every account misses no event of an account that another process was started with, whichever process it asks',
      control:
        'a key of every account gets the events of no account, unless it names one; a key of named accounts never does',
    },
    {
      text: '  if (after !== undefined && after < removed) {',
      mutation: '  if (after !== undefined && after < 0 * removed) {',
      claim:
        'an event older than RETENTION_DAYS is deleted from the beginning of the feed, and a cursor before it expires',
      control: '/v1/events/stream refuses cursor in cursor=1',
    },
    {
      text: '  if (after !== undefined && after > head) {',
      mutation: '  if (after !== undefined && after > head + 1e15) {',
      claim: '/v1/events refuses a cursor beyond its end: an empty page would hide what it skips',
      control: 'an empty feed returns a cursor that leads to the first event',
    },
  ]),
  {
    file: 'src/feed/routes.ts',
    text: "...withScope('payments:read') }",
    mutation: "...withScope('refunds:read') }",
    test: 'test/api/every-route.test.ts',
    claim: 'GET /v1/events is refused to a key that has every scope but its own',
    control: 'GET /v1/search refuses a parameter that it does not know, by its name',
  },
  ...guards({ file: 'src/feed/publish-events.ts', test: 'test/races/feed-order.test.ts' }, [
    {
      text: 'select count(pg_advisory_xact_lock(${sql.unsafe(PUBLISHING_LOCK)})) as taken',
      mutation: 'select count(${sql.unsafe(PUBLISHING_LOCK)}) as taken',
      claim:
        'a publisher waits for one that has numbered an event and not committed: no later position becomes visible first',
      control:
        'an event whose commit ends late reaches a reader that is ahead, once; a reader by order of recording would never see it',
    },
    {
      text: '      delete from event_outbox\n      where id in (select id from event_outbox order by id limit',
      mutation:
        '      delete from event_outbox\n      where id in (select id from event_outbox order by id desc limit',
      claim:
        'a publisher waits for one that has numbered an event and not committed: no later position becomes visible first',
      control: 'an event whose commit ends late blocks no other commit, no publisher and no reader',
    },
  ]),
  {
    file: 'src/feed/read-feed.ts',
    text: 'events.length === limit ? events.at(-1)?.id : undefined',
    mutation: 'undefined',
    test: 'test/api/feed/read.test.ts',
    claim: 'a page holds at most `limit` events, oldest first, and its cursor leads to the next',
    control: '/v1/events refuses after in after=1.5',
  },
]
